// A real engine as a child process: started with low priority on a free port, its output kept, waited for until it is healthy, and killed
// with everything it started.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export interface EngineCommand {
  readonly name: string;
  readonly program: string;
  readonly args: (port: number) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** How long it may take to become healthy. */
  readonly startMs: number;
}

/** A running engine; closing one that is shared does nothing. */
export interface Engine extends AsyncDisposable {
  readonly url: string;
  /** To the process that listens, as an operator or a cluster manager sends it. */
  signal(signal: NodeJS.Signals): void;
  /** To the processes that it has started itself. */
  signalChildren(signal: NodeJS.Signals): void;
  /** Resolves when the process that listens has ended. */
  exited(): Promise<void>;
}

/** An engine that another process has started and will close. */
export function shareEngine(url: string): Engine {
  const refuse = () => {
    throw new Error(`${url} is shared and must not be ended`);
  };
  return { url, signal: refuse, signalChildren: refuse, exited: async () => refuse(), [Symbol.asyncDispose]: async () => {} };
}

export class EngineProcess implements Engine {
  readonly url: string;
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;
  readonly #lines: string[] = [];

  private constructor(name: string, url: string, child: ChildProcess) {
    this.#name = name;
    this.url = url;
    this.#child = child;
    this.#exit = Promise.race([once(child, 'exit'), once(child, 'error')]);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#lines.push(...text.split('\n').filter(Boolean));
        if (this.#lines.length > 2000) this.#lines.splice(0, 1000);
      });
    }
  }

  /** Returns when `GET /health` answers 200. The caller closes it. */
  static async open({ name, program, args, env = {}, startMs }: EngineCommand): Promise<EngineProcess> {
    const port = await findFreePort();
    // It dies with this process, and its own group lets us kill its helpers with it.
    const wrapped = ['--pdeathsig', 'KILL', 'nice', '-n', '10', program, ...args(port)];
    const child = spawn('setpriv', wrapped, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const engine = new EngineProcess(name, `http://127.0.0.1:${port}`, child);
    try {
      await engine.#waitUntilHealthy(startMs);
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
    return engine;
  }

  /** Its last lines of output, oldest first. */
  log(lines = 20): string {
    return this.#lines.slice(-lines).join('\n');
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  signalChildren(signal: NodeJS.Signals): void {
    const path = `/proc/${this.#child.pid}/task/${this.#child.pid}/children`;
    for (const pid of readFileSync(path, 'utf8').trim().split(' ').filter(Boolean)) process.kill(Number(pid), signal);
  }

  async exited(): Promise<void> {
    if (this.isRunning) await this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {} // the whole group has ended
    await this.exited();
  }

  async #waitUntilHealthy(startMs: number): Promise<void> {
    const deadline = performance.now() + startMs;
    while (this.isRunning && performance.now() < deadline) {
      if (await isHealthy(this.url)) return;
      await pause(250);
    }
    const what = this.isRunning
      ? `is not healthy after ${startMs / 1000} s`
      : `ended with ${this.#child.exitCode ?? this.#child.signalCode}`;
    throw new Error(`${this.#name} ${what}:\n${this.log(30)}`);
  }
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) })).ok;
  } catch {
    return false; // it does not listen yet
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('the system gave no port');
  return address.port;
}
