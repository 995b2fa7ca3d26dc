// The sandbox contract: an isolated machine with a persistent shell, opened for one rollout and gone with it.
// bubblewrap and Apptainer implement it; one suite in testkit holds for both.

import type { SandboxId, ShellRunReply } from '@millrace/protocol';

export interface SandboxSpec {
  /** A SIF file, an unpacked directory, or what the image cache can make one of; its programs are there instead of the machine's. Needs Apptainer. */
  readonly image?: string;
  /** Variables for the shell and for every program, beside PATH, HOME, LANG, TERM and PAGER. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface ShellResult {
  readonly end: ShellRunReply['end'];
  readonly exitCode?: number;
  /** Valid text: no ANSI codes, carriage returns resolved, the middle cut out where it passed the cap. */
  readonly output: string;
  readonly totalBytes: number;
  readonly cutBytes: number;
  /** The shell's working directory afterwards. */
  readonly cwd?: string;
  readonly ms: number;
}

export interface ExecResult {
  /** Absent when a signal ended it. */
  readonly exitCode?: number;
  readonly signal?: string;
  readonly timedOut: boolean;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly cutBytes: number;
}

export interface ExecOptions {
  readonly stdin?: Buffer | string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly capBytes?: number;
  readonly signal?: AbortSignal;
}

/**
 * Closing is idempotent, bounded in time, and leaves no process and no file behind. When the sandbox dies by itself, every
 * pending and later call throws `sandbox-died`. A call whose signal aborts throws the signal's reason within a second.
 */
export interface Sandbox extends AsyncDisposable {
  readonly id: SandboxId;
  /** Aborted, with the RolloutError as its reason, when the sandbox has died without being closed. */
  readonly died: AbortSignal;
  /** One command at a time in the persistent shell; state (cwd, variables, functions) stays from call to call. */
  runShell(
    command: string,
    options: { readonly timeoutMs: number; readonly capBytes?: number; readonly signal?: AbortSignal },
  ): Promise<ShellResult>;
  /** A program of its own, outside the shell, with its own standard input. */
  exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult>;
  /** Throws `not-found` or `artifact-too-large`. */
  readFile(path: string, options: { readonly maxBytes: number; readonly signal?: AbortSignal }): Promise<Buffer>;
  writeFile(path: string, content: Buffer | string, options?: { readonly mode?: number; readonly signal?: AbortSignal }): Promise<void>;
}

export interface SandboxDriver {
  readonly name: string;
  /**
   * Writes the sandbox down, starts it and waits until its executor is ready. Throws `sandbox-start-failed` with what was seen,
   * and `sandbox-refused` when there is no such sandbox to be had.
   */
  open(spec: SandboxSpec, options?: { readonly signal?: AbortSignal }): Promise<Sandbox>;
  /** Removes what dead owners on this machine have left: processes and folders. Answers how many sandboxes there were. */
  sweep(): Promise<number>;
}
