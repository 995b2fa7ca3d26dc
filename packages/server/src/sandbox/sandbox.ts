// The sandbox contract: an isolated machine with a persistent shell, opened for one rollout and gone with it.
// bubblewrap and Apptainer implement it; one suite in testkit holds for both.

import type { PythonRunReply, SandboxId, ShellRunReply } from '@millrace/protocol';
import type { SandboxLimits } from './config.ts';

export interface SandboxSpec {
  /** A SIF file, an unpacked directory, or what the image cache can make one of; its programs are there instead of the machine's. Needs Apptainer. */
  readonly image?: string;
  /** Variables for the shell and for every program, beside PATH, HOME, LANG, TERM and PAGER. */
  readonly env?: Readonly<Record<string, string>>;
  /** Those that are absent are the configuration's. */
  readonly limits?: Partial<SandboxLimits>;
  /** `host` is refused where the configuration does not allow it. */
  readonly network?: 'none' | 'host';
  /** The folder of a layer that `freeze` of the same driver has filled, from a spec that differs in nothing else; it must stay while the sandbox lives. */
  readonly layer?: string;
}

export interface LayerRequest {
  /** Filled with what the preparation changed; must be free, on a disk of this machine. */
  readonly folder: string;
  prepare(sandbox: Sandbox): Promise<void>;
  readonly signal?: AbortSignal;
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

export interface PythonImage {
  readonly mimeType: string;
  readonly data: Buffer;
}

export interface PythonResult {
  readonly end: PythonRunReply['end'];
  /** As of a shell command: what was printed, displayed and raised, in its order, with a note where an image stood. */
  readonly output: string;
  readonly images: readonly PythonImage[];
  readonly totalBytes: number;
  readonly cutBytes: number;
  /** The process ended during the cell: the next cell begins without variables. */
  readonly stateLost: boolean;
  readonly ms: number;
}

export interface PythonOptions {
  readonly timeoutMs: number;
  readonly capBytes?: number;
  /** Begins with a new Python process. */
  readonly restart?: boolean;
  readonly signal?: AbortSignal;
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

/** There is no `user`: a sandbox without root has one user id, its own, and cannot become another. */
export interface ExecOptions {
  readonly stdin?: Buffer | string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly capBytes?: number;
  readonly signal?: AbortSignal;
}

export interface TransferOptions {
  /** Of the files together; 1 GiB by default. */
  readonly maxBytes?: number;
  readonly maxEntries?: number;
  /** For each step: packing, a piece, unpacking. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Closing is idempotent, bounded in time, and leaves no process and no file behind. When the sandbox dies by itself, every
 * pending and later call throws `sandbox-died`, or `sandbox-limit` where its agent has used it up. A call whose signal aborts throws the signal's reason within a second.
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
  /** One IPython cell at a time in the persistent Python process, which starts with the first; variables stay from call to call. */
  runPython(code: string, options: PythonOptions): Promise<PythonResult>;
  /** A program of its own, outside the shell, with its own standard input. */
  exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult>;
  /** Throws `not-found` or `artifact-too-large`. */
  readFile(path: string, options: { readonly maxBytes: number; readonly signal?: AbortSignal }): Promise<Buffer>;
  writeFile(path: string, content: Buffer | string, options?: { readonly mode?: number; readonly signal?: AbortSignal }): Promise<void>;
  /** Copies a file or a folder of this machine to that path in the sandbox; into a folder that is there already, what it holds. */
  upload(hostPath: string, sandboxPath: string, options?: TransferOptions): Promise<void>;
  /**
   * Copies a file or a folder out to a path that must be free. Links that leave the folder, pipes and devices are left out and
   * named. Throws `not-found`, `artifact-too-large`, or `sandbox-refused` for an archive that no honest sandbox makes.
   */
  download(sandboxPath: string, hostPath: string, options?: TransferOptions): Promise<{ readonly skipped: readonly string[] }>;
}

export interface OpenOptions {
  readonly signal?: AbortSignal;
  /** For a sandbox that is started ahead: its wall time begins when this resolves. */
  readonly handedOver?: Promise<void>;
}

export interface SandboxDriver {
  readonly name: string;
  /**
   * Writes the sandbox down, starts it and waits until its executor is ready. Throws `sandbox-start-failed` with what was seen,
   * and `sandbox-refused` when there is no such sandbox to be had.
   */
  open(spec: SandboxSpec, options?: OpenOptions): Promise<Sandbox>;
  /**
   * Opens a sandbox, prepares it, and keeps its files: /workspace, and with Apptainer all changes to the image; not /tmp, not
   * /dev/shm, and no process. Sandboxes with that `layer` find them as they were left, and what each changes is its own. Absent
   * where this machine cannot stack files. Throws what `prepare` throws; what is in the folder then is the caller's to remove.
   */
  freeze?(spec: SandboxSpec, request: LayerRequest): Promise<void>;
  /** Removes what dead owners on this machine have left: processes and folders. Answers how many sandboxes there were. */
  sweep(): Promise<number>;
}
