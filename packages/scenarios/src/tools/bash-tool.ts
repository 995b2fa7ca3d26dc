// The bash tool: runs one command in the sandbox's persistent shell and describes how it ended.

import type { ShellResult } from '@millrace/sandbox';
import { z } from 'zod';
import { noMemory, type Tool } from './tool.ts';

/** How much output of one command the model reads at most. */
const capBytes = 32 * 1024;

const bashArguments = z.object({ command: z.string(), timeout_s: z.number().gt(0).optional() });

export const bashTool: Tool = {
  memory: noMemory,
  spec: {
    name: 'bash',
    description:
      'Run a command in a persistent bash shell. Variables, functions and the working directory are kept between calls. Standard input is empty.',
    parameters: {
      type: 'object',
      properties: {
        command: { type: 'string', description: 'The command; it may have many lines.' },
        timeout_s: { type: 'number', description: 'Seconds until the command is interrupted; limited by the task.' },
      },
      required: ['command'],
    },
  },
  async run(args, { sandbox, timeoutMs, signal }) {
    if (!sandbox) return { kind: 'text', text: 'bash: this task has no sandbox to run commands in' };
    const parsed = bashArguments.safeParse(args);
    if (!parsed.success) return { kind: 'text', text: `bash: ${z.prettifyError(parsed.error)}` };
    const { command, timeout_s } = parsed.data;
    const limitMs = Math.min(timeoutMs, timeout_s === undefined ? timeoutMs : timeout_s * 1000);
    return { kind: 'text', text: renderShellResult(await sandbox.runShell(command, { timeoutMs: limitMs, capBytes, signal }), limitMs) };
  },
};

/** The output, followed by a line in brackets unless the command succeeded. */
export function renderShellResult(result: ShellResult, limitMs: number): string {
  const note = noteOf(result, limitMs);
  const output = result.output.replace(/\n$/, '');
  if (!note) return output === '' ? '[no output]' : output;
  return output === '' ? note : `${output}\n${note}`;
}

function noteOf(result: ShellResult, limitMs: number): string | undefined {
  const limit = `${limitMs / 1000} s`;
  switch (result.end) {
    case 'exited':
      return result.exitCode === 0 ? undefined : `[exit code ${result.exitCode ?? 'unknown'}]`;
    case 'timeout':
      return `[not done after ${limit}: interrupted with Ctrl-C]`;
    case 'shell-killed':
      return `[not done after ${limit}, and it ignored Ctrl-C: killed together with the shell; a new shell was started, its variables are gone]`;
    case 'shell-exited':
      return `[the shell ended${result.exitCode === undefined ? '' : ` with exit code ${result.exitCode}`}; a new shell was started, its variables are gone]`;
    case 'shell-broken':
      return '[the shell stopped working, because of this command or an earlier one, and this command may not have run; a new shell was started in the same directory: variables, functions and aliases are gone]';
    case 'cancelled':
      return '[cancelled]';
  }
}
