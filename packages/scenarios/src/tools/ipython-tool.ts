// The ipython tool: runs one cell in the sandbox's persistent Python process and describes how it ended. An image is named where it
// was shown; its data stays out of the text.

import type { PythonResult } from '@millrace/sandbox';
import { z } from 'zod';
import { noMemory, type Tool } from './tool.ts';

/** How much output of one cell the model reads at most. */
const capBytes = 32 * 1024;

const ipythonArguments = z.object({ code: z.string(), timeout_s: z.number().gt(0).optional(), restart: z.boolean().default(false) });

export const ipythonTool: Tool = {
  memory: noMemory,
  spec: {
    name: 'ipython',
    description:
      'Run a cell in a persistent IPython session. Variables and imports are kept between calls, the value of the last expression is shown, and magics and !commands work. input() is not available.',
    parameters: {
      type: 'object',
      properties: {
        code: { type: 'string', description: 'The cell: Python, with magics and !commands.' },
        timeout_s: { type: 'number', description: 'Seconds until the cell is interrupted; limited by the task.' },
        restart: { type: 'boolean', description: 'Start a new session, without the variables of the old one.' },
      },
      required: ['code'],
    },
  },
  async run(args, { sandbox, timeoutMs, signal }) {
    if (!sandbox) return { kind: 'text', text: 'ipython: this task has no sandbox to run code in' };
    const parsed = ipythonArguments.safeParse(args);
    if (!parsed.success) return { kind: 'text', text: `ipython: ${z.prettifyError(parsed.error)}` };
    const { code, timeout_s, restart } = parsed.data;
    const limitMs = Math.min(timeoutMs, timeout_s === undefined ? timeoutMs : timeout_s * 1000);
    const result = await sandbox.runPython(code, { timeoutMs: limitMs, capBytes, restart, signal });
    return { kind: 'text', text: renderPythonResult(result, limitMs) };
  },
};

/** The output, followed by a line in brackets for what the output does not show. */
export function renderPythonResult(result: PythonResult, limitMs: number): string {
  const note = noteOf(result, limitMs);
  const output = result.output.replace(/\n$/, '');
  if (!note) return output === '' ? '[no output]' : output;
  return output === '' ? note : `${output}\n${note}`;
}

const lost = 'its variables are lost, and the next cell starts a new process';

function noteOf({ end, stateLost }: PythonResult, limitMs: number): string | undefined {
  switch (end) {
    case 'ok':
    case 'error':
      return undefined;
    case 'timeout':
      return stateLost
        ? `[not done after ${limitMs / 1000} s, and it ignored the interrupt: the Python process was killed; ${lost}]`
        : `[not done after ${limitMs / 1000} s: interrupted; the variables are kept]`;
    case 'host-died':
      return `[the Python process ended; ${lost}]`;
    case 'missing':
      return '[ipython is not available in this sandbox]';
    case 'cancelled':
      return '[cancelled]';
  }
}
