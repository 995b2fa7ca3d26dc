// `millrace serve` as a process in its own process group, as a terminal starts it, with the tiny model.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { openClient } from '@millrace/client';
import { rolloutId } from '@millrace/protocol';
import { openSqliteStore, type RolloutRecord } from '@millrace/store';
import { makeTempFolder } from '@millrace/testkit';
import { writeTinyModel } from '../../src/author/local/tiny-model.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

export interface ServeBed extends AsyncDisposable {
  readonly folder: string;
  readonly model: string;
  /** Starts `millrace serve` with the bed's folders and these options. */
  serve(...options: string[]): ServeProcess;
  /** As the store has it, without a service. */
  rollout(id: string): Promise<RolloutRecord | undefined>;
}

export interface ServeProcess {
  readonly child: ChildProcess;
  out(): string;
  err(): string;
  /** The address, once it is announced. */
  url(): Promise<string>;
  /** The signal reaches every process of the group, as a Ctrl-C does. */
  interrupt(): void;
  exit(): Promise<number | null>;
}

export async function openServeBed(): Promise<ServeBed> {
  const folder = await makeTempFolder('serve');
  const children: ChildProcess[] = [];
  const model = join(folder.path, 'model');
  await writeTinyModel(model);
  const config = join(folder.path, 'millrace.json');
  const data = join(folder.path, 'data');
  await writeFile(config, JSON.stringify({ run: join(folder.path, 'run'), data, sandbox: { warm: { sandboxes: 0 } } }));
  return {
    folder: folder.path,
    model,
    serve(...options) {
      const child = spawn(process.execPath, [main, 'serve', '--config', config, '--port', '0', ...options], {
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      children.push(child);
      return toProcess(child);
    },
    async rollout(id) {
      await using store = await openSqliteStore({ path: join(data, 'millrace.db'), clock: systemClock, log: silentLog });
      return await store.get(rolloutId.parse(id));
    },
    async [Symbol.asyncDispose]() {
      for (const child of children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      await folder[Symbol.asyncDispose]();
    },
  };
}

function toProcess(child: ChildProcess): ServeProcess {
  const texts = { out: '', err: '' };
  if (!child.stdout || !child.stderr) throw new Error('the service has no output');
  const first = once(createInterface(child.stdout), 'line');
  child.stdout.on('data', (chunk) => {
    texts.out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    texts.err += chunk;
  });
  const closed = once(child, 'close');
  return {
    child,
    out: () => texts.out,
    err: () => texts.err,
    async url() {
      const [line] = await Promise.race([first, closed.then(() => [undefined])]);
      if (line === undefined) throw new Error(`the service did not start:\n${texts.err}`);
      return JSON.parse(line).url;
    },
    interrupt: () => void process.kill(-(child.pid ?? 0), 'SIGINT'),
    async exit() {
      await closed;
      return child.exitCode;
    },
  };
}

/** Submits a shell task whose first command sleeps, and returns when its sandbox runs that command. */
export async function submitSleeper(url: string, backend: string, seconds: number): Promise<string> {
  await using client = openClient({ url });
  await client.backends.join({ url: backend });
  const task = { instruction: `sleep ${seconds}`, check: 'true' };
  await client.submit([{ id: 'sleeper', scenario: 'shell', task }]);
  while ((await client.get('sleeper')).state !== 'run') await new Promise((resolve) => setTimeout(resolve, 20));
  return 'sleeper';
}
