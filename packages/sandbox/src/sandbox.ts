// The sandbox contract: an isolated machine with a persistent shell, opened for one rollout and removed after it. bubblewrap and Apptainer
// implement it, and one contract suite in testkit tests both.

import type { Duplex } from 'node:stream';
import type { Uncharged } from '@millrace/base/deadline';
import type { PythonRunReply, SandboxId, ShellRunReply } from '@millrace/protocol';
import type { SandboxLimits } from './config.ts';

export interface SandboxSpec {
  /** A SIF file, an unpacked directory, or anything that the image cache can convert to one. Requires Apptainer. */
  readonly image?: string;
  /** Variables for the shell and every program, in addition to PATH, HOME, LANG, TERM and PAGER. */
  readonly env?: Readonly<Record<string, string>>;
  /** Absent limits come from the configuration. */
  readonly limits?: Partial<SandboxLimits>;
  /** `host` is refused unless the configuration allows it. */
  readonly network?: 'none' | 'host';
  /** `user` lets the agent create user namespaces, in which it can mount nothing. Refused unless the configuration allows it. */
  readonly namespaces?: 'none' | 'user';
  /** The folder of a layer that `freeze` of the same driver filled from an otherwise equal spec. It must exist while the sandbox does. */
  readonly layer?: string;
  /** The folder of an installed harness, in the driver's run folder. It is mounted read-only at /opt/millrace/harness, with any image or none. */
  readonly harness?: string;
}

export interface LayerRequest {
  /** Receives the files that the preparation changed. It must not exist yet, and must be on a local disk. */
  readonly folder: string;
  prepare(sandbox: Sandbox): Promise<void>;
  readonly signal?: AbortSignal;
}

export interface ShellOptions {
  readonly timeoutMs: number;
  /** For the wait until the call may begin, which is never charged against `timeoutMs`. */
  readonly uncharged?: Uncharged;
  /** How many bytes of output to keep; 64 KiB by default. */
  readonly capBytes?: number;
  readonly signal?: AbortSignal;
}

export interface ShellResult {
  readonly end: ShellRunReply['end'];
  readonly exitCode?: number;
  /** Valid text without ANSI codes, with carriage returns applied. Output over the cap loses its middle. */
  readonly output: string;
  readonly totalBytes: number;
  readonly cutBytes: number;
  /** The shell's working directory after the command. */
  readonly cwd?: string;
  readonly ms: number;
}

export interface PythonImage {
  readonly mimeType: string;
  readonly data: Buffer;
}

export interface PythonResult {
  readonly end: PythonRunReply['end'];
  /** Everything printed, displayed and raised, in order and in the form of a shell command's output, with a note in place of each image. */
  readonly output: string;
  readonly images: readonly PythonImage[];
  readonly totalBytes: number;
  readonly cutBytes: number;
  /** The process ended during the cell: the next cell starts without variables. */
  readonly stateLost: boolean;
  readonly ms: number;
}

export interface PythonOptions {
  readonly timeoutMs: number;
  /** How many bytes of output to keep; 64 KiB by default. */
  readonly capBytes?: number;
  /** Starts a new Python process first. */
  readonly restart?: boolean;
  /** As for a command of the shell. */
  readonly uncharged?: Uncharged;
  readonly signal?: AbortSignal;
}

export interface ExecResult {
  /** Absent if a signal ended the program. */
  readonly exitCode?: number;
  readonly signal?: string;
  readonly timedOut: boolean;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly cutBytes: number;
}

/** There is no `user`: without root, a sandbox has exactly one user id. */
export interface ExecOptions {
  readonly stdin?: Buffer | string;
  /** The home folder by default. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Ends the program before that, in the same way. */
  readonly expire?: AbortSignal;
  /** In an evaluation: the caller decides what a SIGKILL means. Otherwise the evaluation is repeated after one from outside. */
  readonly judgesKills?: boolean;
  /** How many bytes of each output to keep; 64 KiB by default. */
  readonly capBytes?: number;
  /** As for a command of the shell. */
  readonly uncharged?: Uncharged;
  readonly signal?: AbortSignal;
}

export interface OpenProgramOptions {
  /** The home folder by default. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** What a program printed since the last read. */
export interface ProgramOutput {
  readonly data: Buffer;
  /** Set when the program has ended and everything was read. */
  readonly end?: { readonly exitCode?: number; readonly signal?: string; readonly stderr: string };
}

/** A program that keeps running in the sandbox. Closing kills it and the programs that it started; it ends with its sandbox. */
export interface SandboxProgram extends AsyncDisposable {
  write(data: Buffer | string, options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Waits for output, the end, or the time; empty when the time is up. Read again after each. */
  read(options: { readonly timeoutMs: number; readonly signal?: AbortSignal }): Promise<ProgramOutput>;
}

export interface ListenOptions {
  /** A free port is chosen by default. */
  readonly port?: number;
  /** A program that connects while this many are open waits; 64 by default. */
  readonly maxConnections?: number;
  /**
   * Called for each connection. It is a stream like a socket, which `server.emit('connection', …)` of an HTTP server takes; it ends with an
   * error when the program resets it or the sandbox ends.
   */
  onConnection(connection: Duplex): void;
  readonly signal?: AbortSignal;
}

/** Closing resets its connections; it ends with its sandbox. */
export interface SandboxListener extends AsyncDisposable {
  readonly port: number;
}

export interface TransferOptions {
  /** Limit for all files together; 1 GiB by default. */
  readonly maxBytes?: number;
  /** Limit for files and folders in a download; 100,000 by default. */
  readonly maxEntries?: number;
  /** Limit for each step (packing, one piece, unpacking); 120 s by default. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface FileOptions {
  readonly maxBytes: number;
  /** Follows links to anywhere: for what the agent itself reads. */
  readonly anyLink?: boolean;
  readonly signal?: AbortSignal;
}

export interface FolderOptions {
  /** Limit for the archive, up to 64 MiB. */
  readonly maxBytes: number;
  /** Limit for files, folders and links together; 100,000 by default. */
  readonly maxEntries?: number;
  /** Only what was changed at this time or later, in milliseconds since the epoch. */
  readonly sinceMs?: number;
  /** Kills every program of the sandbox first, also its shell, so that none changes the files meanwhile. */
  readonly stopPrograms?: boolean;
  /** Keeps links that leave the folder: only for an archive that no check reads. */
  readonly anyLink?: boolean;
  /** Files and folders with one of these names are left out, at any depth. */
  readonly exclude?: readonly string[];
  /** Lists what was not changed since `sinceMs`, so that the caller knows what was deleted. */
  readonly listUnchanged?: boolean;
  readonly signal?: AbortSignal;
}

export interface FolderArchive {
  /**
   * A tar archive of files, folders and links that stay inside, with paths relative to the folder. A link to an absolute path inside the
   * folder is packed as a relative one. Of the links that leave it, only those to the Python of an image are kept, for virtual environments.
   */
  readonly archive: Buffer;
  readonly entries: number;
  /** What was left out, each with its reason: links that leave the folder, pipes, sockets, paths over 3,900 bytes. At most 20 are named. The archive has it too. */
  readonly skipped: readonly string[];
  readonly leftOut: number;
  /** With `listUnchanged`: paths of files and links relative to the folder, each followed by a null character; otherwise empty. */
  readonly unchanged: Buffer;
}

/** What the kernel counted for everything in a sandbox. */
export interface SandboxUse {
  /** Of all processes that it ever had. */
  readonly cpuMs: number;
  /** Whether a thread runs at this moment, or is ready to and has no core, or waits for the disk or for memory. */
  readonly isBusy: boolean;
  /** Processes that were killed because the sandbox reached its own limit of memory. */
  readonly ownOomKills: number;
  /** Processes that were killed because the machine ran out of memory. */
  readonly foreignOomKills: number;
}

/**
 * Closing is idempotent, bounded in time, and leaves no process and no file behind. If the sandbox dies on its own, every pending and
 * later call throws `sandbox-died`, or `sandbox-limit` or `sandbox-killed` if the agent caused it. A call whose signal aborts throws the
 * signal's reason within a second. Relative paths start at the home folder, /workspace.
 */
export interface Sandbox extends AsyncDisposable {
  readonly id: SandboxId;
  /** Aborts, with a RolloutError as its reason, when the sandbox dies without being closed. */
  readonly died: AbortSignal;
  /** Runs one command at a time in the persistent shell. Working directory, variables and functions stay from call to call. */
  runShell(command: string, options: ShellOptions): Promise<ShellResult>;
  /** Runs one IPython cell at a time in the persistent Python process, which starts with the first cell. Variables stay from call to call. */
  runPython(code: string, options: PythonOptions): Promise<PythonResult>;
  /** Runs a separate program outside the shell, with its own standard input. */
  exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult>;
  /** Starts a program that keeps running, to write to and to read from. Throws `not-found` if there is no such program. */
  openProgram(argv: readonly string[], options?: OpenProgramOptions): Promise<SandboxProgram>;
  /**
   * Offers a service of the worker to the programs of the sandbox, on 127.0.0.1 and no other address; a sandbox without network has its own.
   * With the machine's network, every program of the machine can connect. Throws `sandbox-refused` if the port is in use.
   */
  listen(options: ListenOptions): Promise<SandboxListener>;
  /**
   * Reads a regular file. A link from /workspace to a file outside of it, or from anywhere to /proc, /sys or /dev, is not followed unless
   * `anyLink` is set. Throws `not-found` or `artifact-too-large`.
   */
  readFile(path: string, options: FileOptions): Promise<Buffer>;
  /** Creates missing parent folders. The mode is 0644 by default. Throws `sandbox-refused`, or `sandbox-limit` if the disk is full. */
  writeFile(path: string, content: Buffer | string, options?: { readonly mode?: number; readonly signal?: AbortSignal }): Promise<void>;
  /** Copies a file of the sandbox to a new one, as `writeFile` writes it. Starts no program. */
  copyFile(from: string, to: string, options?: { readonly mode?: number; readonly signal?: AbortSignal }): Promise<void>;
  /** A new folder. The mode is 0755 by default. Starts no program. */
  makeFolder(path: string, options?: { readonly mode?: number; readonly signal?: AbortSignal }): Promise<void>;
  /**
   * Packs a folder without any program of the sandbox, so that an agent cannot prevent it: unreadable folders are made readable, and a file that is
   * being written is cut at its size. Throws `not-found` or `artifact-too-large`.
   */
  readFolder(path: string, options: FolderOptions): Promise<FolderArchive>;
  /** Takes a fraction of a millisecond. All zero once the sandbox has ended. */
  readUse(): SandboxUse;
  /** Copies a file or a folder of this machine to a path in the sandbox. If both are folders, their contents are merged. */
  upload(hostPath: string, sandboxPath: string, options?: TransferOptions): Promise<void>;
  /**
   * Copies a file or a folder to a path on this machine that must not exist yet. Links that leave the folder, pipes and devices are left
   * out and listed in `skipped`. Throws `conflict`, `not-found`, `artifact-too-large`, or `sandbox-refused` for a malformed archive.
   */
  download(sandboxPath: string, hostPath: string, options?: TransferOptions): Promise<{ readonly skipped: readonly string[] }>;
}

export interface OpenOptions {
  readonly signal?: AbortSignal;
  /** For a sandbox that is started ahead of use: its wall time starts when this resolves. */
  readonly handedOver?: Promise<void>;
}

export interface SandboxDriver {
  readonly name: string;
  /** The folders that have every file that a program of its sandboxes can change, for checkpoints. Absent if programs can change others. */
  readonly writable?: readonly string[];
  /**
   * Records the sandbox on disk, starts it and waits until its executor is ready. Throws `sandbox-start-failed` with the error output,
   * and `sandbox-refused` for a spec that this driver or configuration does not allow.
   */
  open(spec: SandboxSpec, options?: OpenOptions): Promise<Sandbox>;
  /**
   * Opens a sandbox, prepares it, and keeps its files: /workspace and, with Apptainer, all changes to the image; not /tmp, not /dev/shm,
   * and no processes. Sandboxes with that `layer` start with these files, and see only their own changes to them. Absent if this
   * machine cannot mount overlays. Throws what `prepare` throws; the caller then removes the folder.
   */
  freeze?(spec: SandboxSpec, request: LayerRequest): Promise<void>;
  /** Removes processes and folders of sandboxes whose owner on this machine is dead. Returns the number of sandboxes removed. */
  sweep(): Promise<number>;
}
