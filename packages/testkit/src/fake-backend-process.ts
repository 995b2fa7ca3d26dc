// Starts the fake backend as a process of its own, so that what is measured or killed here is not the backend too.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

export interface FakeBackendProcessOptions {
  /** fixed, echo, or the path of a module that exports `policy`. */
  readonly policy: string;
  readonly turns?: number;
  readonly tokensPerTurn?: number;
  readonly latencyMs?: number;
}

export interface FakeBackendProcess extends AsyncDisposable {
  readonly url: string;
}

const listening = z.object({ url: z.string() });

export async function openFakeBackendProcess(options: FakeBackendProcessOptions): Promise<FakeBackendProcess> {
  const { policy, turns = 3, tokensPerTurn = 64, latencyMs = 0 } = options;
  const main = fileURLToPath(new URL('./fake-backend-main.ts', import.meta.url));
  const args = ['--policy', policy, '--turns', `${turns}`, '--tokens-per-turn', `${tokensPerTurn}`, '--latency', `${latencyMs}`];
  const child = fork(main, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  if (!child.stdout) throw new Error('the fake backend has no standard output');
  const [line]: unknown[] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit').then(() => [])]);
  if (typeof line !== 'string') throw new Error(`the fake backend did not start: exit code ${child.exitCode}`);
  return {
    url: listening.parse(JSON.parse(line)).url,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
