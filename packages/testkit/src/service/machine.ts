// A machine of workers for tests and benchmarks: `millrace worker --join` as its own process, with its own folder, and in its own network
// if a command leads there. It can be killed with all of its workers at once, as when a machine loses its power, and started again.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface TestMachineOptions {
  /** Of the service that it joins. */
  readonly url: string;
  readonly key?: string;
  readonly name: string;
  readonly workers: number;
  /** Its own configuration, on top of that of the service. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Added to the environment of its processes. */
  readonly env?: Readonly<Record<string, string>>;
  /** A command that runs the rest of its line somewhere else, such as in another network. */
  readonly enter?: readonly string[];
}

/** What `millrace worker` writes when its first worker takes rollouts. */
const readyText = ' rollouts of ';

export class TestMachine implements AsyncDisposable {
  readonly folder: string;
  /** The folder of its sandboxes. */
  readonly runDir: string;
  readonly name: string;
  readonly #options: TestMachineOptions;
  #child: ChildProcess | undefined;

  private constructor(folder: string, options: TestMachineOptions) {
    this.folder = folder;
    this.runDir = join(folder, 'run');
    this.name = options.name;
    this.#options = options;
  }

  /** Resolves when its first worker takes rollouts. */
  static async open(options: TestMachineOptions): Promise<TestMachine> {
    const machine = new TestMachine(await mkdtemp(join(tmpdir(), 'mm-')), options);
    try {
      await machine.start();
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
    return machine;
  }

  get logPath(): string {
    return join(this.folder, 'machine.log');
  }

  async log(): Promise<string> {
    return await readFile(this.logPath, 'utf8').catch(() => ''); // never started
  }

  /** Starts it; again in the same folder, under the same name. */
  async start(): Promise<void> {
    const { url, key, name, workers, config = {}, env, enter = [] } = this.#options;
    const path = join(this.folder, 'machine.json');
    await writeFile(path, JSON.stringify({ ...config, run: this.runDir, machine: { name } }));
    const before = (await this.log()).length;
    const main = fileURLToPath(import.meta.resolve('millrace/main'));
    const command = [process.execPath, main, 'worker', '--join', url, '--workers', String(workers), '--config', path];
    const [program = '', ...values] = [...enter, ...command];
    const log = openSync(this.logPath, 'a');
    const child = spawn(program, values, {
      stdio: ['ignore', 'ignore', log],
      env: { ...process.env, ...env, ...(key !== undefined && { MILLRACE_KEY: key }) },
    });
    closeSync(log);
    this.#child = child;
    while (!(await this.log()).includes(readyText, before)) {
      if (hasEnded(child)) throw new Error(`machine ${name} did not start:\n${(await this.log()).slice(before)}`);
      await pause(50);
    }
  }

  /** The processes of its workers. */
  async workerPids(): Promise<number[]> {
    const { pid } = this.#child ?? {};
    return pid === undefined ? [] : await findChildren(pid);
  }

  /** SIGKILL to everything: nothing is handed back. */
  async kill(): Promise<void> {
    const workers = await this.workerPids();
    const child = this.#child;
    this.#child = undefined;
    if (!child || hasEnded(child)) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    for (const pid of workers) killProcess(pid);
    await exited;
  }

  /** Waits for its workers to finish or hand back. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || hasEnded(child)) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

async function findChildren(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const parents = await Promise.all(
    pids.map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''); // it ended while we looked
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    }),
  );
  return pids.filter((_, index) => parents[index] === parent).map(Number);
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // already gone: that is what we wanted
  }
}
