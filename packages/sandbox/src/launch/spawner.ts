// Starts the holders of sandboxes through one small native process (`native/spawn`): to start a program, the kernel copies the page tables of
// the process that starts it, and a worker has hundreds of MiB. It ends with this process, and with it every holder that dies with its parent.
// It also writes and removes the few small files of a sandbox: in this process, each would be some passes through the thread pool.

import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import { z } from 'zod';

/** A holder that was started. None of these rejects. */
interface SpawnedHolder {
  /** Undefined if it could not be started. */
  readonly pid: Promise<number | undefined>;
  /** What it wrote to file descriptor 3; undefined if nothing is read there, or it ended before. */
  readonly report: Promise<string | undefined>;
  /** How it ended, with the end of its standard error. */
  readonly ended: Promise<string>;
  /** Does nothing once it has ended. */
  kill(): void;
}

interface SpawnOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly reportsPid: boolean;
  /** Called if the spawner ends before the holder does: what it started may then be left. Must not reject. */
  onOrphaned(): Promise<void>;
}

interface OpenHolder {
  readonly onPid: (pid: number | undefined) => void;
  readonly onReport: (text: string | undefined) => void;
  readonly onEnd: (how: string) => void;
  readonly onOrphaned: () => Promise<void>;
}

interface FileChange {
  readonly paths: readonly string[];
  readonly resolve: (left: readonly string[]) => void;
}

const lengthBytes = 4;
const message = z.union([
  z.tuple([z.literal('done'), z.string()], z.string()),
  z.tuple([z.literal('pid'), z.string(), z.coerce.number().int().min(2)]),
  z.tuple([z.literal('report'), z.string(), z.string()]),
  z.tuple([z.literal('end'), z.string(), z.enum(['exit', 'signal']), z.coerce.number().int(), z.string()]),
]);

export class Spawner {
  readonly #program: string;
  readonly #holders = new Map<string, OpenHolder>();
  readonly #calls = new Map<string, FileChange>();
  #child: ChildProcess | undefined;
  #arrived: Buffer = Buffer.alloc(0);
  #nextId = 1;

  /** `program` is the executor. Nothing is started before the first holder. */
  constructor(program: string) {
    this.#program = program;
  }

  /** `command` is the executor's program with `enter` and what it becomes. */
  start(command: readonly string[], { env, reportsPid, onOrphaned }: SpawnOptions): SpawnedHolder {
    const id = `${this.#nextId++}`;
    const [pid, report, ended] = [
      Promise.withResolvers<number | undefined>(),
      Promise.withResolvers<string | undefined>(),
      Promise.withResolvers<string>(),
    ];
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const frame = encode(['start', id, reportsPid ? '1' : '0', `${variables.length}`, ...variables, ...command]);
    this.#holders.set(id, { onPid: pid.resolve, onReport: report.resolve, onEnd: ended.resolve, onOrphaned });
    this.#open().stdin?.write(frame);
    return {
      pid: pid.promise,
      report: report.promise,
      ended: ended.promise,
      kill: () => this.#holders.has(id) && this.#child?.stdin?.write(encode(['kill', id])),
    };
  }

  /** Writes a new file. Returns its path if that failed. */
  async write(path: string, text: string): Promise<string | undefined> {
    const [left] = await this.#call('write', [path, text], [path]);
    return left;
  }

  /** Removes files, and empty folders and control groups, one after another. Returns the first that could not be, and all after it. */
  async remove(paths: readonly string[]): Promise<readonly string[]> {
    return await this.#call('remove', paths, paths);
  }

  #call(what: string, texts: readonly string[], paths: readonly string[]): Promise<readonly string[]> {
    const id = `${this.#nextId++}`;
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    this.#calls.set(id, { paths, resolve });
    this.#open().stdin?.write(encode([what, id, ...texts]));
    return promise;
  }

  /** It keeps this process alive only while a holder runs, or a call is open. */
  #open(): ChildProcess {
    const child = this.#child ?? this.#spawn();
    this.#child = child;
    setHeld(child, true);
    return child;
  }

  #spawn(): ChildProcess {
    // In its own session: a Ctrl-C in the worker's terminal must not end all sandboxes.
    const child = spawn(this.#program, ['spawn', `${process.pid}`], { env: {}, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    this.#arrived = Buffer.alloc(0);
    child.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    child.stdin.on('error', () => {}); // its end is its own event
    child.stdout.on('error', () => {});
    const end = (how: string) => {
      if (this.#child !== child) return;
      this.#child = undefined;
      for (const { resolve, paths } of this.#calls.values()) resolve(paths);
      this.#calls.clear();
      for (const [id, holder] of this.#holders) void this.#orphan(id, holder, how);
    };
    child.once('error', (error) => end(error.message));
    child.once('close', (code, signal) => end(signal ? `ended by ${signal}` : `exit ${code}`));
    return child;
  }

  async #orphan(id: string, holder: OpenHolder, how: string): Promise<void> {
    this.#holders.delete(id);
    await holder.onOrphaned();
    end(holder, `its spawner: ${how}`);
  }

  #take(chunk: Buffer): void {
    this.#arrived = this.#arrived.length === 0 ? chunk : Buffer.concat([this.#arrived, chunk]);
    while (this.#arrived.length >= lengthBytes) {
      const end = lengthBytes + this.#arrived.readUInt32LE();
      if (this.#arrived.length < end) return;
      this.#note(message.parse(this.#arrived.toString('utf8', lengthBytes, end - 1).split('\0')));
      this.#arrived = this.#arrived.subarray(end);
    }
  }

  #note(answer: z.infer<typeof message>): void {
    const holder = this.#holders.get(answer[1]);
    switch (answer[0]) {
      case 'pid':
        holder?.onPid(answer[2]);
        break;
      case 'report':
        holder?.onReport(answer[2]);
        break;
      case 'done':
        this.#calls.get(answer[1])?.resolve(answer.slice(2).map(String));
        this.#calls.delete(answer[1]);
        this.#release();
        break;
      case 'end': {
        const [, id, kind, number, error] = answer;
        this.#holders.delete(id);
        this.#release();
        const how = kind === 'signal' ? `ended by ${nameSignal(number)}` : `exit ${number}`;
        if (holder) end(holder, [how, error.trim()].filter(Boolean).join(': '));
      }
    }
  }

  #release(): void {
    if (this.#holders.size + this.#calls.size === 0 && this.#child) setHeld(this.#child, false);
  }
}

/** What was not reported until then will not be. */
function end({ onPid, onReport, onEnd }: OpenHolder, how: string): void {
  onPid(undefined);
  onReport(undefined);
  onEnd(how);
}

function setHeld(child: ChildProcess, isHeld: boolean): void {
  const change = isHeld ? 'ref' : 'unref';
  child[change]();
  for (const stream of [child.stdin, child.stdout]) if (stream instanceof Socket) stream[change]();
}

function encode(texts: readonly string[]): Buffer {
  const bad = texts.find((text) => text.includes('\0'));
  if (bad !== undefined) throw new TypeError(`an argument of a program has a null byte: ${JSON.stringify(bad.slice(0, 100))}`);
  const payload = Buffer.from(`${texts.join('\0')}\0`);
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(payload.length);
  return Buffer.concat([length, payload]);
}

function nameSignal(number: number): string {
  return Object.entries(constants.signals).find(([, one]) => one === number)?.[0] ?? `signal ${number}`;
}
