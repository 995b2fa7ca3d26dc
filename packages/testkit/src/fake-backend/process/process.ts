// Starts the fake backend as a separate process, so that measuring or killing this process does not affect it.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Fault } from '../faults.ts';

interface FakeBackendProcessOptions {
  /** fixed, echo, or the path of a module that exports `policy`. */
  readonly policy: string;
  readonly turns?: number;
  readonly tokensPerTurn?: number;
  readonly latencyMs?: number;
  readonly tokenMs?: number;
  readonly weights?: number;
  /** A free one by default. */
  readonly port?: number;
}

export interface FakeBackendCommand {
  /** Takes effect when no generation is in flight. */
  readonly weights?: number;
  /** For every generation from now on; null ends it. */
  readonly fault?: Fault | null;
}

export interface FakeBackendProcess extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** Resolves when it is done, with the number of generations in flight when it arrived. */
  send(command: FakeBackendCommand): Promise<{ readonly inFlight: number }>;
}

const done = z.object({ inFlight: z.int() });
const listening = z.object({ url: z.string() });

export async function openFakeBackendProcess(options: FakeBackendProcessOptions): Promise<FakeBackendProcess> {
  const { policy, turns = 3, tokensPerTurn = 64, latencyMs = 0, tokenMs = 0, weights = 0, port = 0 } = options;
  const main = fileURLToPath(new URL('./main.ts', import.meta.url));
  const settings = { policy, turns, 'tokens-per-turn': tokensPerTurn, latency: latencyMs, 'token-ms': tokenMs, weights, port };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  const child = fork(main, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  if (!child.stdout) throw new Error('the fake backend has no standard output');
  const [line]: unknown[] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit').then(() => [])]);
  if (typeof line !== 'string') throw new Error(`the fake backend did not start: exit code ${child.exitCode}`);
  return {
    url: listening.parse(JSON.parse(line)).url,
    pid: child.pid ?? 0,
    async send(command) {
      const answered = once(child, 'message');
      child.send(command);
      const [answer] = await answered;
      return done.parse(answer);
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
