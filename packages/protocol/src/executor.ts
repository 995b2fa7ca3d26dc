// The executor wire: frames over one Unix socket between a worker and the executor inside its sandbox.
// A frame is two big-endian uint32 (length of the head, length of the body), a JSON head, and raw bytes.
// The executor imports only types from here. The worker checks every reply, because the agent runs on the executor's machine.

import { z } from 'zod';

export const maxHeadBytes = 1 << 20;
export const maxBodyBytes = 64 << 20;

/** The first frame: the executor sends it when it is ready. */
export const readyFrame = z.object({ event: z.literal('ready'), pid: z.int(), protocol: z.literal(1) });

/**
 * `limits.json` in the folder that a worker shares with its executor: limits that the executor sets on every program it starts for the
 * agent. An absent limit is enforced by a control group.
 */
export const programLimits = z.strictObject({
  processes: z.int().min(1).optional(),
  memory_mib: z.int().min(1).optional(),
});
export type ProgramLimits = z.infer<typeof programLimits>;

/** The request body is the command. */
export interface ShellRunParams {
  readonly timeout_ms: number;
  readonly cap_bytes: number;
}

/**
 * How a command in the persistent shell ended:
 * - exited: the command ended, and the shell is still running
 * - timeout: the command ran out of time and was interrupted with Ctrl-C or killed; the shell is still running
 * - shell-killed: the command could not be stopped, so the shell and all its processes were killed; a new shell was started
 * - shell-exited: the command ended the shell itself (exit, exec, set -e, kill $$); a new shell was started
 * - shell-broken: this command or an earlier one left a shell that runs nothing (a function, a disabled builtin, a trap, a terminal setting,
 *   a limit), so this command may not have run; a new shell was started
 * - cancelled: the caller cancelled the command; it was stopped as after a timeout
 */
export const shellEnds = ['exited', 'timeout', 'shell-killed', 'shell-exited', 'shell-broken', 'cancelled'] as const;

/** The body is the output as UTF-8 text without ANSI codes. Output over the cap loses its middle. */
export const shellRunReply = z.object({
  end: z.enum(shellEnds),
  exit_code: z.int().nullable(),
  total_bytes: z.int().min(0),
  cut_bytes: z.int().min(0),
  cwd: z.string().nullable(),
  ms: z.number().min(0),
});
export type ShellRunReply = z.infer<typeof shellRunReply>;

/** The request body is the code of one cell. */
export interface PythonRunParams {
  readonly timeout_ms: number;
  readonly cap_bytes: number;
  /** Starts a new Python process first; the variables of the old one are lost. */
  readonly restart: boolean;
}

/**
 * How a cell in the persistent Python process ended:
 * - ok: the cell ran to its end
 * - error: the cell raised; the output holds the traceback
 * - timeout: the cell ran out of time and was interrupted, or killed if the interrupt did not stop it
 * - host-died: the process ended during the cell (exit, a crash, a kill)
 * - missing: there is no Python with IPython here; the output says what is missing
 * - cancelled: the caller cancelled the cell; it was stopped as after a timeout
 */
export const pythonEnds = ['ok', 'error', 'timeout', 'host-died', 'missing', 'cancelled'] as const;

export const maxPythonImages = 16;
export const maxPythonImageBytes = 4 << 20;

/** The body is the output as text, in the same form as a shell command's, followed by the images one after the other. */
export const pythonRunReply = z.object({
  end: z.enum(pythonEnds),
  /** Whether the process ended, and with it every variable. */
  state_lost: z.boolean(),
  text_bytes: z.int().min(0),
  total_bytes: z.int().min(0),
  cut_bytes: z.int().min(0),
  images: z.array(z.object({ mime: z.string().max(100), bytes: z.int().min(0).max(maxPythonImageBytes) })).max(maxPythonImages),
  ms: z.number().min(0),
});
export type PythonRunReply = z.infer<typeof pythonRunReply>;

/** A one-off program outside the shell, in its own process group. The request body is its standard input. */
export interface ExecParams {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly timeout_ms: number;
  readonly cap_bytes: number;
}

/** The body is stdout followed by stderr, as raw bytes. Each is cut off at the cap. */
export const execReply = z.object({
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  timed_out: z.boolean(),
  stdout_bytes: z.int().min(0),
  stderr_bytes: z.int().min(0),
  cut_bytes: z.int().min(0),
});
export type ExecReply = z.infer<typeof execReply>;

/** A program that keeps running. The reply has its number, which the other calls name. */
export interface ProgramOpenParams {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}
export const programOpenReply = z.object({ program: z.int().min(1) });

/** The request body goes to its standard input. */
export interface ProgramWriteParams {
  readonly program: number;
}
export const programWriteReply = z.object({});

/** Waits for output, the program's end, or the time. */
export interface ProgramReadParams {
  readonly program: number;
  readonly timeout_ms: number;
  readonly cap_bytes: number;
}
/** The body is what it printed since the last read and, at its end, the last part of its standard error. */
export const programReadReply = z.object({
  ended: z.boolean(),
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  stdout_bytes: z.int().min(0),
  stderr_bytes: z.int().min(0),
});
export type ProgramReadReply = z.infer<typeof programReadReply>;

/** Kills the program and those that it started. */
export interface ProgramCloseParams {
  readonly program: number;
}
export const programCloseReply = z.object({});

export interface FileReadParams {
  readonly path: string;
  readonly max_bytes: number;
  /** Follows links to anywhere, for the agent's own reading. */
  readonly any_link?: boolean;
}
export const fileReadReply = z.object({ size: z.int().min(0) });

/** The request body is the content. Missing parent folders are created. */
export interface FileWriteParams {
  readonly path: string;
  readonly mode: number;
}
export const fileWriteReply = z.object({});

/** To a new file. Missing parent folders are created. */
export interface FileCopyParams {
  readonly from: string;
  readonly path: string;
  readonly mode: number;
}
export const fileCopyReply = z.object({});

/** A new folder. Missing parent folders are created. */
export interface FolderMakeParams {
  readonly path: string;
  readonly mode: number;
}
export const folderMakeReply = z.object({});

/** Packs a folder as a tar archive, which is the body of the reply. What cannot be packed is left out. */
export interface FolderReadParams {
  readonly path: string;
  /** Limits for the whole archive. */
  readonly max_bytes: number;
  readonly max_entries: number;
  /** Only what was changed at this time or later, in milliseconds since the epoch; everything if absent. */
  readonly since_ms?: number;
  /** Kills every other process of the sandbox first. */
  readonly stop_programs: boolean;
  /** Keeps links that leave the folder. */
  readonly any_link?: boolean;
  /** Entries with one of these names are left out with everything below them, at any depth. */
  readonly exclude?: readonly string[];
  /** Appends to the body the paths of files and links that were not changed since `since_ms`, each followed by a null character. */
  readonly list_unchanged?: boolean;
}
/**
 * `skipped` names the first entries that were left out, each with its reason; `left_out` counts all of them. The last `list_bytes` bytes
 * of the body are the list of what was not changed.
 */
export const folderReadReply = z.object({
  entries: z.int().min(0),
  skipped: z.array(z.string()).max(100),
  left_out: z.int().min(0),
  list_bytes: z.int().min(0).default(0),
});
export type FolderReadReply = z.infer<typeof folderReadReply>;

/**
 * Listens on 127.0.0.1 inside the sandbox. The worker chooses the listener's number. With port 0 the kernel chooses one. A program that
 * connects while `max_connections` are open waits until one is closed.
 */
export interface LoopbackListenParams {
  readonly listener: number;
  readonly port: number;
  readonly max_connections: number;
  readonly window_bytes: number;
}
export const loopbackListenReply = z.object({ port: z.int().min(1).max(65_535) });

/** Resets the listener's connections too. */
export interface LoopbackCloseParams {
  readonly listener: number;
}
export const loopbackCloseReply = z.object({});

/** In each direction of a connection, at most this many bytes are on the way that the other side has not acknowledged. */
export const connectionWindowBytes = 128 << 10;

/**
 * Messages to the executor about one connection, without a reply: bytes for the program, no more of them, bytes of the program that were
 * taken, and no interest any more. Each connection ends with the executor's `close` or `reset`.
 */
export type ConnectionMethod = 'connection.write' | 'connection.end' | 'connection.ack' | 'connection.close';

const connection = z.int().min(1);

/** The same from the executor. The body of `data` is what the program wrote. */
export const connectionEvent = z.discriminatedUnion('event', [
  z.object({ event: z.literal('open'), connection, listener: z.int() }),
  z.object({ event: z.literal('data'), connection }),
  z.object({ event: z.literal('ack'), connection, bytes: z.int().min(1) }),
  z.object({ event: z.literal('end'), connection }),
  z.object({ event: z.literal('close'), connection }),
  z.object({ event: z.literal('reset'), connection }),
]);

/** A cancel has no reply: the call that it stops replies, as after its own time limit if it has `expired`. */
export type ExecutorCall =
  | { readonly id: number; readonly method: 'shell.run'; readonly params: ShellRunParams }
  | { readonly id: number; readonly method: 'python.run'; readonly params: PythonRunParams }
  | { readonly id: number; readonly method: 'exec'; readonly params: ExecParams }
  | { readonly id: number; readonly method: 'program.open'; readonly params: ProgramOpenParams }
  | { readonly id: number; readonly method: 'program.write'; readonly params: ProgramWriteParams }
  | { readonly id: number; readonly method: 'program.read'; readonly params: ProgramReadParams }
  | { readonly id: number; readonly method: 'program.close'; readonly params: ProgramCloseParams }
  | { readonly id: number; readonly method: 'file.read'; readonly params: FileReadParams }
  | { readonly id: number; readonly method: 'file.write'; readonly params: FileWriteParams }
  | { readonly id: number; readonly method: 'file.copy'; readonly params: FileCopyParams }
  | { readonly id: number; readonly method: 'folder.make'; readonly params: FolderMakeParams }
  | { readonly id: number; readonly method: 'folder.read'; readonly params: FolderReadParams }
  | { readonly id: number; readonly method: 'loopback.listen'; readonly params: LoopbackListenParams }
  | { readonly id: number; readonly method: 'loopback.close'; readonly params: LoopbackCloseParams }
  | { readonly id: number; readonly method: 'cancel'; readonly params: { readonly call: number; readonly expired?: boolean } };

export const executorErrorKinds = ['not-found', 'too-large', 'bad-call', 'failed', 'limit'] as const;
export type ExecutorErrorKind = (typeof executorErrorKinds)[number];

/** The worker acts on `error.kind`, and for a limit on `errno`; the message is for people. */
export const replyFrame = z.object({
  id: z.int(),
  result: z.unknown().optional(),
  error: z.object({ kind: z.enum(executorErrorKinds), message: z.string(), errno: z.string().optional() }).optional(),
});
