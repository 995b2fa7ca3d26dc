// The executor wire: frames over one Unix socket between a worker and the process inside its sandbox.
// A frame is two uint32 (big-endian: length of head, length of body), a JSON head, and raw bytes.
// The executor imports these types only; the worker checks every reply, because the agent shares the executor's machine.

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
 * - exited: it ended, and the shell lives on
 * - timeout: it was interrupted with Ctrl-C after its time, and the shell lives on
 * - shell-killed: it would not be interrupted, so the shell and all it started were killed; a new shell is there
 * - shell-exited: it ended the shell itself (exit, exec, set -e, kill $$); a new shell is there
 * - cancelled: the caller cancelled it; it was stopped as a timeout is
 */
export const shellEnds = ['exited', 'timeout', 'shell-killed', 'shell-exited', 'cancelled'] as const;

/** The body is the output as UTF-8 text, without ANSI codes, with its middle cut out where it passed the cap. */
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
  /** Whether to begin with a new Python process; what the old one held is gone. */
  readonly restart: boolean;
}

/**
 * How a cell in the persistent Python process ended:
 * - ok, error: it ran to its end, or raised; the output holds the traceback
 * - timeout: it was interrupted after its time, or killed where that did not help
 * - host-died: the process ended during the cell (exit, a crash, a kill)
 * - missing: there is no Python with IPython here; the output says what is missing
 * - cancelled: the caller cancelled it; it was stopped as a timeout is
 */
export const pythonEnds = ['ok', 'error', 'timeout', 'host-died', 'missing', 'cancelled'] as const;

export const maxPythonImages = 16;
export const maxPythonImageBytes = 4 << 20;

/** The body is the output as text, as of a shell command, then the images one after the other. */
export const pythonRunReply = z.object({
  end: z.enum(pythonEnds),
  /** Whether the process ended, and with it all that the cells had made. */
  state_lost: z.boolean(),
  text_bytes: z.int().min(0),
  total_bytes: z.int().min(0),
  cut_bytes: z.int().min(0),
  images: z.array(z.object({ mime: z.string().max(100), bytes: z.int().min(0).max(maxPythonImageBytes) })).max(maxPythonImages),
  ms: z.number().min(0),
});
export type PythonRunReply = z.infer<typeof pythonRunReply>;

/** A one-off program outside the shell, in a process group of its own. The request's body is its standard input. */
export interface ExecParams {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly timeout_ms: number;
  readonly cap_bytes: number;
}

/** The body is stdout, then stderr, raw bytes; each is cut at its end where it passed the cap. */
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

/** The request's body is the content. Folders above it are made. */
export interface FileWriteParams {
  readonly path: string;
  readonly mode: number;
}
export const fileWriteReply = z.object({});

/** A cancel has no reply of its own: the call that it stops replies. */
export type ExecutorCall =
  | { readonly id: number; readonly method: 'shell.run'; readonly params: ShellRunParams }
  | { readonly id: number; readonly method: 'python.run'; readonly params: PythonRunParams }
  | { readonly id: number; readonly method: 'exec'; readonly params: ExecParams }
  | { readonly id: number; readonly method: 'file.read'; readonly params: FileReadParams }
  | { readonly id: number; readonly method: 'file.write'; readonly params: FileWriteParams }
  | { readonly id: number; readonly method: 'cancel'; readonly params: { readonly call: number } };

/** `error.kind` is what the worker decides by; the message is for people. */
export const replyFrame = z.object({
  id: z.int(),
  result: z.unknown().optional(),
  error: z.object({ kind: z.enum(['not-found', 'too-large', 'bad-call', 'failed', 'limit']), message: z.string() }).optional(),
});
