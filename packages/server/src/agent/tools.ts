// The built-in tools by name. Each rollout gets its own, because some of them keep state.

import { z } from 'zod';
import { bashTool } from './bash-tool.ts';
import { makeEditorTool } from './editor-tool.ts';
import { ipythonTool } from './ipython-tool.ts';
import type { Tool } from './tool.ts';
import { type ToolName, toolNames } from './tool-names.ts';

const finishArguments = z.object({ answer: z.string().default('') });

export const finishTool: Tool = {
  spec: {
    name: 'finish',
    description: 'Say that the task is done. You cannot do anything after this call.',
    parameters: { type: 'object', properties: { answer: { type: 'string', description: 'The answer, if the task asks for one.' } } },
  },
  async run(args) {
    const parsed = finishArguments.safeParse(args);
    if (!parsed.success) return { kind: 'text', text: `finish: ${z.prettifyError(parsed.error)}` };
    return { kind: 'finish', answer: parsed.data.answer };
  },
};

const makers: Readonly<Record<ToolName, () => Tool>> = {
  bash: () => bashTool,
  ipython: () => ipythonTool,
  str_replace_editor: makeEditorTool,
  finish: () => finishTool,
};

/** Throws for an unknown name: that is a mistake of the scenario, not of the model. */
export function openTool(name: string): Tool {
  const known = toolNames.find((candidate) => candidate === name);
  if (!known) throw new Error(`no tool is named ${name}; the built-in tools are ${toolNames.join(', ')}`);
  return makers[known]();
}
