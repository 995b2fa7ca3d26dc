// The names of the built-in tools, and a list of them as tasks choose it.

import { z } from 'zod';

export const toolNames = ['bash', 'ipython', 'str_replace_editor', 'think', 'finish', 'submit'] as const;
export type ToolName = (typeof toolNames)[number];

/** `tools` of a task, in the order in which the model sees them. */
export const toolChoice = z
  .array(z.enum(toolNames))
  .refine((names) => new Set(names).size === names.length, 'a tool is named twice')
  .describe('The tools of the agent, in the order in which the model sees them.');

const inSandbox: ReadonlySet<ToolName> = new Set(['bash', 'ipython', 'str_replace_editor']);

/** Whether one of these tools works in a sandbox. */
export function needsSandbox(names: readonly ToolName[]): boolean {
  return names.some((name) => inSandbox.has(name));
}
