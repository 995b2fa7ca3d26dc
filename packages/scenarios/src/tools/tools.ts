// The built-in tools by name. Each rollout gets its own, because some of them keep state.

import { z } from 'zod';
import { bashTool } from './bash-tool.ts';
import { makeEditorTool } from './editor-tool.ts';
import { ipythonTool } from './ipython-tool.ts';
import { noMemory, type Tool } from './tool.ts';
import { type ToolName, toolNames } from './tool-names.ts';

/** Models that learned on other services call it with `message`. */
const finishArguments = z.object({ answer: z.string().optional(), message: z.string().optional() });

const finishTool: Tool = {
  memory: noMemory,
  spec: {
    name: 'finish',
    description: 'Say that the task is done. You cannot do anything after this call.',
    parameters: { type: 'object', properties: { answer: { type: 'string', description: 'The answer, if the task asks for one.' } } },
  },
  async run(args) {
    const parsed = finishArguments.safeParse(args);
    if (!parsed.success) return { kind: 'text', text: `finish: ${z.prettifyError(parsed.error)}` };
    return { kind: 'finish', answer: parsed.data.answer ?? parsed.data.message ?? '' };
  },
};

const thinkArguments = z.object({ thought: z.string() });

/** Changes nothing: what it is called with stays in the context. */
export const thinkTool: Tool = {
  memory: noMemory,
  spec: {
    name: 'think',
    description:
      'Write down a thought, a plan or what you learned. Nothing is run and nothing changes; the thought stays in the conversation.',
    parameters: { type: 'object', properties: { thought: { type: 'string', description: 'The thought.' } }, required: ['thought'] },
  },
  async run(args) {
    const parsed = thinkArguments.safeParse(args);
    return { kind: 'text', text: parsed.success ? '[noted]' : `think: ${z.prettifyError(parsed.error)}` };
  },
};

/** For tasks whose answer is what the agent leaves in its sandbox. */
const submitTool: Tool = {
  memory: noMemory,
  spec: {
    name: 'submit',
    description: 'Submit your work as it is now. You cannot do anything after this call.',
    parameters: { type: 'object', properties: {} },
  },
  run: async () => ({ kind: 'finish', answer: '' }),
};

const makers: Readonly<Record<ToolName, () => Tool>> = {
  bash: () => bashTool,
  ipython: () => ipythonTool,
  str_replace_editor: makeEditorTool,
  think: () => thinkTool,
  finish: () => finishTool,
  submit: () => submitTool,
};

/** Throws for an unknown name: that is a mistake of the scenario, not of the model. */
export function openTool(name: string): Tool {
  const known = toolNames.find((candidate) => candidate === name);
  if (!known) throw new Error(`no tool is named ${name}; the built-in tools are ${toolNames.join(', ')}`);
  return makers[known]();
}
