// The names of the built-in tools, and a list of tools as tasks choose it: built-in ones, tools and MCP servers of the service's
// configuration by name, and MCP servers that run in the sandbox. A task never names an address.

import { z } from 'zod';

export const toolNames = ['bash', 'ipython', 'str_replace_editor', 'think', 'finish', 'submit'] as const;
export type ToolName = (typeof toolNames)[number];

export function isToolName(name: string): name is ToolName {
  return toolNames.some((one) => one === name);
}

/** What the name of a tool may be, for a model to call it. */
export const toolNamePattern = /^[A-Za-z0-9_-]{1,64}$/;
/** The name of a server is the beginning of its tools' names. */
export const serverNamePattern = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;

export const mcpChoice = z
  .strictObject({
    mcp: z
      .string()
      .regex(serverNamePattern, 'expected a letter, then letters, digits, _ and -, at most 32')
      .describe('The name of the server. Without `command`, one of `tools.mcp` in the configuration.'),
    command: z
      .array(z.string())
      .min(1)
      .optional()
      .describe('The program of the server and its arguments. It runs in the sandbox and speaks MCP on its standard input and output.'),
    env: z.record(z.string(), z.string()).optional().describe('Variables of that program. The agent can read them.'),
    cwd: z.string().startsWith('/').optional().describe('Its folder; /workspace by default.'),
    only: z.array(z.string().min(1)).min(1).optional().describe('The tools of the server that the agent gets; all of them by default.'),
  })
  .refine(({ command, env, cwd }) => command !== undefined || (env === undefined && cwd === undefined), {
    path: ['command'],
    message: 'env and cwd are for a server with a command',
  });
export type McpChoice = z.infer<typeof mcpChoice>;

/** A built-in tool or one of the configuration by name, or an MCP server. */
export type ToolChoice = ToolName | (string & {}) | McpChoice;

const oneChoice = z.unknown().transform((value, context): ToolChoice => {
  const name = z.string().regex(toolNamePattern, 'expected the name of a tool: 1 to 64 letters, digits, _ and -');
  const parsed = typeof value === 'string' ? name.safeParse(value) : mcpChoice.safeParse(value);
  if (parsed.success) return parsed.data;
  for (const { path, message } of parsed.error.issues) context.issues.push({ code: 'custom', path, message, input: value });
  return z.NEVER;
});

/** `tools` of a task, in the order in which the model sees them. Whether the names exist is checked where the configuration is known. */
export const toolChoice = z
  .array(oneChoice)
  .refine((choices) => new Set(choices.map(labelOf)).size === choices.length, 'a tool is named twice')
  .describe('The tools of the agent, in the order in which the model sees them.');

/** The name by which a prompt mentions the choice. */
export function labelOf(choice: ToolChoice): string {
  return typeof choice === 'string' ? choice : choice.mcp;
}

const inSandbox: ReadonlySet<string> = new Set<ToolName>(['bash', 'ipython', 'str_replace_editor']);

/** Whether one of these tools works in a sandbox. */
export function needsSandbox(choices: readonly ToolChoice[]): boolean {
  return choices.some((choice) => (typeof choice === 'string' ? inSandbox.has(choice) : choice.command !== undefined));
}
