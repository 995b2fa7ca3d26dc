// The executor wire: frames over one Unix socket between a worker and the executor inside its sandbox. A frame is two uint32 (big-endian:
// length of head, length of body), a JSON head, and raw bytes. The executor imports only the types; the worker checks every reply,
// because the agent shares the executor's sandbox.

import { z } from 'zod';

export const maxHeadBytes = 1 << 20;
export const maxBodyBytes = 64 << 20;

/** The first frame, sent by the executor when it is ready. */
export const readyFrame = z.object({ event: z.literal('ready'), pid: z.int(), protocol: z.literal(1) });

/** The request's body is the command. */
export interface ShellRunParams {
  readonly timeout_ms: number;
  readonly cap_bytes: number;
}

/**
 * How a command in the persistent shell ended:
 * - exited: it ended; the shell is still running
 * - timeout: it was interrupted with Ctrl-C after its timeout; the shell is still running
 * - shell-killed: it ignored the interrupt, so the shell and everything it started were killed; there is a new shell
 * - shell-exited: it ended the shell itself (exit, exec, set -e, kill $$); there is a new shell
 * - cancelled: the caller cancelled it; it was stopped in the same way as after a timeout
 */
export const shellEnds = ['exited', 'timeout', 'shell-killed', 'shell-exited', 'cancelled'] as const;

/** The body is the output as UTF-8 text without ANSI codes. Output beyond the cap loses its middle. */
export const shellRunReply = z.object({
  end: z.enum(shellEnds),
  exit_code: z.int().nullable(),
  total_bytes: z.int().min(0),
  cut_bytes: z.int().min(0),
  cwd: z.string().nullable(),
  ms: z.number().min(0),
});
export type ShellRunReply = z.infer<typeof shellRunReply>;

/** The request's body is the code of one cell. */
export interface PythonRunParams {
  readonly timeout_ms: number;
  readonly cap_bytes: number;
  /** Whether to start a new Python process; the state of the old one is lost. */
  readonly restart: boolean;
}

/**
 * How a cell in the persistent Python process ended:
 * - ok, error: it ran to its end, or raised an exception; the output has the traceback
 * - timeout: it was interrupted after its timeout, or killed if it ignored that
 * - host-died: the process ended during the cell (exit, a crash, a kill)
 * - missing: there is no Python with IPython in the sandbox; the output says what is missing
 * - cancelled: the caller cancelled it; it was stopped in the same way as after a timeout
 */
export const pythonEnds = ['ok', 'error', 'timeout', 'host-died', 'missing', 'cancelled'] as const;

export const maxPythonImages = 16;
export const maxPythonImageBytes = 4 << 20;

/** The body is the output as text, as for a shell command, followed by the images. */
export const pythonRunReply = z.object({
  end: z.enum(pythonEnds),
  /** Whether the process ended, so that all variables are lost. */
  state_lost: z.boolean(),
  text_bytes: z.int().min(0),
  total_bytes: z.int().min(0),
  cut_bytes: z.int().min(0),
  images: z.array(z.object({ mime: z.string().max(100), bytes: z.int().min(0).max(maxPythonImageBytes) })).max(maxPythonImages),
  ms: z.number().min(0),
});
export type PythonRunReply = z.infer<typeof pythonRunReply>;

/** A single program outside the shell, in its own process group. The request's body is its standard input. */
export interface ExecParams {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly timeout_ms: number;
  readonly cap_bytes: number;
}

/** The body is stdout followed by stderr, as raw bytes. Each is truncated at the cap. */
export const execReply = z.object({
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  timed_out: z.boolean(),
  stdout_bytes: z.int().min(0),
  stderr_bytes: z.int().min(0),
  cut_bytes: z.int().min(0),
});
export type ExecReply = z.infer<typeof execReply>;

export interface FileReadParams {
  readonly path: string;
  readonly max_bytes: number;
}
export const fileReadReply = z.object({ size: z.int().min(0) });

/** The request's body is the content. Missing parent folders are created. */
export interface FileWriteParams {
  readonly path: string;
  readonly mode: number;
}
export const fileWriteReply = z.object({});

/** A cancel has no reply: the call that it stops replies. */
export type ExecutorCall =
  | { readonly id: number; readonly method: 'shell.run'; readonly params: ShellRunParams }
  | { readonly id: number; readonly method: 'python.run'; readonly params: PythonRunParams }
  | { readonly id: number; readonly method: 'exec'; readonly params: ExecParams }
  | { readonly id: number; readonly method: 'file.read'; readonly params: FileReadParams }
  | { readonly id: number; readonly method: 'file.write'; readonly params: FileWriteParams }
  | { readonly id: number; readonly method: 'cancel'; readonly params: { readonly call: number } };

/** The worker acts on `error.kind`; the message is for people. */
export const replyFrame = z.object({
  id: z.int(),
  result: z.unknown().optional(),
  error: z.object({ kind: z.enum(['not-found', 'too-large', 'bad-call', 'failed', 'limit']), message: z.string() }).optional(),
});
