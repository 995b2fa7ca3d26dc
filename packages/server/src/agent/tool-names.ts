// The names of the built-in tools.

export const toolNames = ['bash', 'ipython', 'str_replace_editor', 'finish'] as const;
export type ToolName = (typeof toolNames)[number];
