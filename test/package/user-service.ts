// `millrace serve` in a user's folder, with a fake backend in another process.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { type FakeBackendProcess, openFakeBackendProcess, qwen3Folder } from '@millrace/testkit';
import { startProgram } from './run-program.ts';
import type { UserFolder } from './user-folder.ts';

export class UserService implements AsyncDisposable {
  readonly url: string;
  /** The process that the user's shell started. */
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #backend: FakeBackendProcess;

  private constructor(child: ChildProcess, url: string, backend: FakeBackendProcess) {
    this.#child = child;
    this.url = url;
    this.pid = child.pid ?? 0;
    this.#backend = backend;
  }

  static async open(user: UserFolder, scenarios: readonly string[]): Promise<UserService> {
    const [data, run] = [join(user.path, 'data'), join(user.path, 'run')];
    const config = { data, run, model: { tokenizer: qwen3Folder() }, workers: 1, scenarios, http: { port: 0 } };
    await writeFile(join(user.path, 'millrace.json'), JSON.stringify(config));
    const command = ['node_modules/.bin/millrace', 'serve', '--config', 'millrace.json'];
    const child = startProgram(command, { cwd: user.path, path: [user.nodeFolder] });
    if (!child.stdout || !child.stderr) throw new Error('the service has no output');
    const log = text(child.stderr);
    const [line]: unknown[] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit').then(() => [])]);
    if (typeof line !== 'string') throw new Error(`the service did not start:\n${await log}`);
    const { url }: { url: string } = JSON.parse(line);
    const backend = await openFakeBackendProcess({ policy: join(import.meta.dirname, 'policy.ts') });
    const service = new UserService(child, url, backend);
    const joined = await postJson(`${url}/v1/backends`, { url: backend.url });
    if (joined.ok) return service;
    await service[Symbol.asyncDispose]();
    throw new Error(`the backend could not join: ${await joined.text()}`);
  }

  /** Resolves with the exit code, or the name of the signal that ended it. */
  async stop(signal: NodeJS.Signals): Promise<number | string> {
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    const [code, killedBy] = await exited;
    return code ?? killedBy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.stop('SIGTERM');
    await this.#backend[Symbol.asyncDispose]();
  }
}

function postJson(url: string, body: unknown): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}
