// The agent's tools by name, made anew for each rollout: some remember.

import { z } from 'zod';
import { bashTool } from './bash-tool.ts';
import { makeEditorTool } from './editor-tool.ts';
import { ipythonTool } from './ipython-tool.ts';
import type { Tool } from './tool.ts';

const finishArguments = z.object({ answer: z.string().default('') });

export const finishTool: Tool = {
  spec: {
    name: 'finish',
    description: 'Say that the task is done. Nothing can be done after it.',
    parameters: { type: 'object', properties: { answer: { type: 'string', description: 'The answer, where the task asks for one.' } } },
  },
  async run(args) {
    const parsed = finishArguments.safeParse(args);
    if (!parsed.success) return { kind: 'answer', text: `finish: ${z.prettifyError(parsed.error)}` };
    return { kind: 'finish', answer: parsed.data.answer };
  },
};

const makers: Readonly<Record<string, () => Tool>> = {
  bash: () => bashTool,
  ipython: () => ipythonTool,
  str_replace_editor: makeEditorTool,
  finish: () => finishTool,
};

/** Throws for a name that no tool has: a scenario's mistake, not the model's. */
export function chooseTools(names: readonly string[]): readonly Tool[] {
  return names.map((name) => {
    const make = Object.hasOwn(makers, name) ? makers[name] : undefined;
    if (!make) throw new Error(`no tool is named ${name}; there are: ${Object.keys(makers).join(', ')}`);
    return make();
  });
}
