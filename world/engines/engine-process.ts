// A real engine as a child process: started on a free port, its output kept, waited for until it is healthy, and killed with everything it
// started.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { chooseFreePort } from '@millrace/base/free-port';

interface EngineCommand {
  readonly name: string;
  readonly program: string;
  readonly args: (port: number) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A free one by default. */
  readonly port?: number | undefined;
  /** How long it may take to become healthy. */
  readonly startMs: number;
  /** What `GET /health` answers then; a server without this route has another one. */
  readonly healthyStatus?: number;
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
  readonly #guardian: ChildProcess;
  readonly #lines: string[] = [];

  private constructor(name: string, url: string, child: ChildProcess) {
    this.#name = name;
    this.url = url;
    this.#child = child;
    this.#exit = Promise.race([once(child, 'exit'), once(child, 'error')]);
    this.#guardian = openGuardian(child.pid);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#lines.push(...text.split('\n').filter(Boolean));
        if (this.#lines.length > 2000) this.#lines.splice(0, 1000);
      });
    }
  }

  /** Returns when `GET /health` answers 200. The caller closes it. */
  static async open({ name, program, args, env = {}, startMs, healthyStatus = 200, port: given }: EngineCommand): Promise<EngineProcess> {
    const port = given ?? (await chooseFreePort('127.0.0.1'));
    // Its own process group: engines start helpers, and all of them are killed together.
    const options: SpawnOptions = { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true };
    const child = spawn(program, [...args(port)], options);
    const engine = new EngineProcess(name, `http://127.0.0.1:${port}`, child);
    try {
      await engine.#waitUntilHealthy(startMs, healthyStatus);
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
    for (const pid of childrenOf(this.#child.pid ?? 0)) process.kill(pid, signal);
  }

  async exited(): Promise<void> {
    if (this.isRunning) await this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.pid !== undefined) this.#guardian.stdin?.end();
    await this.exited();
  }

  async #waitUntilHealthy(startMs: number, status: number): Promise<void> {
    const deadline = performance.now() + startMs;
    while (this.isRunning && performance.now() < deadline) {
      if (await isHealthy(this.url, status)) return;
      await pause(250);
    }
    const what = this.isRunning
      ? `is not healthy after ${startMs / 1000} s`
      : `ended with ${this.#child.exitCode ?? this.#child.signalCode}`;
    throw new Error(`${this.#name} ${what}:\n${this.log(30)}`);
  }
}

/** Kills the group when this process ends, however it ends: its standard input is closed then. */
function openGuardian(group: number | undefined): ChildProcess {
  const script = 'read -r _; kill -KILL -- "-$1" 2>/dev/null';
  const guardian = spawn('bash', ['-c', script, 'bash', `${group}`], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  guardian.unref();
  return guardian;
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return []; // it has ended
  }
}

async function isHealthy(url: string, status: number): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) })).status === status;
  } catch {
    return false; // it does not listen yet
  }
}
