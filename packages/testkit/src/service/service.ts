// A whole service for tests and benchmarks: `millrace serve` as its own process in a temporary folder. It can be killed and started again
// on the same store and port.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Client, openClient } from '@millrace/client';
import { definedOf } from '@millrace/protocol';
import { z } from 'zod';

interface TestServiceOptions {
  readonly workers: number;
  readonly tokenizer: string;
  /** How the model writes tool calls; by default as in the configuration. */
  readonly toolParser?: string;
  /** Whether tools are described in the prompt if the template declares none; by default as in the configuration. */
  readonly teachTools?: boolean;
  readonly pipeline?: Readonly<Record<string, unknown>>;
  /** The client uses the first of its keys. */
  readonly http?: Readonly<Record<string, unknown>> & { readonly keys?: readonly string[] };
  readonly sampling?: Readonly<Record<string, unknown>>;
  readonly sandbox?: Readonly<Record<string, unknown>>;
  readonly inference?: Readonly<Record<string, unknown>>;
  readonly retention?: Readonly<Record<string, unknown>>;
  readonly store?: Readonly<Record<string, unknown>>;
  readonly gym?: Readonly<Record<string, unknown>>;
  readonly tools?: Readonly<Record<string, unknown>>;
  readonly harnesses?: readonly unknown[];
  readonly tracing?: Readonly<Record<string, unknown>>;
  readonly scenarios?: readonly string[];
  /** The folder of the store; by default in that of the service. */
  readonly data?: string;
  /** The folder of its sandboxes; by default in that of the service. */
  readonly run?: string;
  /** Added to the environment of its processes. */
  readonly env?: Readonly<Record<string, string>>;
}

const started = z.object({ url: z.string(), workers: z.int() });

export class TestService implements AsyncDisposable {
  readonly folder: string;
  /** The folder of the sandboxes. */
  readonly runDir: string;
  readonly #options: TestServiceOptions;
  #child: ChildProcess | undefined;
  #client: Client | undefined;
  #port = 0;
  #url = '';

  private constructor(folder: string, options: TestServiceOptions) {
    this.folder = folder;
    this.runDir = options.run ?? join(folder, 'run');
    this.#options = options;
  }

  static async open(options: TestServiceOptions): Promise<TestService> {
    const service = new TestService(await mkdtemp(join(tmpdir(), 'mr-')), options);
    try {
      await service.start();
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
    return service;
  }

  get client(): Client {
    if (!this.#client) throw new Error('the service was never started');
    return this.#client;
  }

  get url(): string {
    return this.#url;
  }

  get storePath(): string {
    return join(this.#data, 'millrace.db');
  }

  get logPath(): string {
    return join(this.folder, 'service.log');
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the service is not running');
    return pid;
  }

  /** Starts it; again on the same store, folder and port. */
  async start(): Promise<void> {
    const { workers, tokenizer, toolParser, teachTools, scenarios = [], http = {}, data: _, run: __, env, ...floors } = this.#options;
    const config = {
      data: this.#data,
      run: this.runDir,
      model: { tokenizer, ...definedOf({ toolParser, teachTools }) },
      scenarios,
      workers,
      ...floors,
      http: { ...http, port: this.#port },
    };
    const path = join(this.folder, 'millrace.json');
    await writeFile(path, JSON.stringify(config));
    const main = fileURLToPath(import.meta.resolve('millrace/main'));
    const log = openSync(this.logPath, 'a');
    const child = spawn(process.execPath, [main, 'serve', '--config', path], {
      stdio: ['ignore', 'pipe', log],
      env: { ...process.env, ...env },
    });
    closeSync(log);
    this.#child = child;
    if (!child.stdout) throw new Error('the service has no standard output');
    const [line]: unknown[] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit').then(() => [])]);
    if (typeof line !== 'string') throw new Error(`the service did not start:\n${await this.log()}`);
    const { url } = started.parse(JSON.parse(line));
    this.#url = url;
    this.#port = Number(new URL(url).port);
    this.#client ??= openClient({ url, ...definedOf({ key: this.#options.http?.keys?.[0] }) });
  }

  /** SIGKILL to the server only; its workers notice. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Waits for the workers to finish or hand back. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async log(): Promise<string> {
    return await readFile(this.logPath, 'utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#client?.[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }

  get #data(): string {
    return this.#options.data ?? join(this.folder, 'data');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, 'exit');
  }
}

/** Pids of live processes that have the folder mounted: everything inside the sandboxes of that run folder. */
export async function processesInSandboxesOf(runDir: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const own = await readlink('/proc/self/ns/pid');
  const inside = await Promise.all(
    pids.map(async (pid) => {
      try {
        if ((await readlink(`/proc/${pid}/ns/pid`)) === own) return false;
        return (await readFile(`/proc/${pid}/mountinfo`, 'utf8')).includes(runDir);
      } catch {
        return false; // It ended while we looked, or it is a zombie without mounts.
      }
    }),
  );
  return pids.filter((_, index) => inside[index]).map(Number);
}
