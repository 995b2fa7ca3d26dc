// The end of `millrace serve`: waits until the workers have finished or handed back what they held, and counts down what is left.

import type { Log } from '@millrace/base/log';
import type { LogFormat, Supervisor } from '@millrace/server';
import type { Store } from '@millrace/store';
import type { Io } from '../command/command.ts';
import { renderDraining, renderStopped } from './serve-text.ts';

interface DrainOptions {
  readonly format: LogFormat;
  readonly log: Log;
  readonly store: Store;
  readonly workers: Supervisor;
  readonly handBackMs: number;
}

interface DrainView {
  /** Waits for the workers to leave. The supervisor must be draining. */
  run(): Promise<void>;
  /** What still runs goes back to the queue at once. */
  handBackNow(): void;
}

const tickMs = 500;

export function openDrainView(io: Io, { format, log, store, workers, handBackMs }: DrainOptions): DrainView {
  const { stderr } = io;
  const isRedrawn = stderr.isTTY === true && format === 'text';
  let isHandingBack = false;
  let shown = '';

  async function draw(until: number): Promise<void> {
    const line = renderDraining({ held: await countHeld(store), leftMs: until - performance.now(), isHandingBack });
    if (line === shown) return;
    if (isRedrawn) stderr.write(`\r${line}\x1b[K`);
    else if (shown === '' || isHandingBack) stderr.write(`millrace: ${line}\n`);
    shown = line;
  }

  return {
    async run() {
      const until = performance.now() + handBackMs;
      const tick = () => void draw(until).catch((error) => log.error('drain-count-failed', { error: String(error) }));
      tick();
      const timer = setInterval(tick, tickMs);
      await workers[Symbol.asyncDispose]();
      clearInterval(timer);
      const { queued } = await store.counts();
      if (isRedrawn) stderr.write('\r\x1b[K');
      if (format === 'text') stderr.write(`${renderStopped(queued)}\n`);
      else log.info('server-stop', { queued });
    },
    handBackNow() {
      isHandingBack = true;
      workers.handBackNow();
    },
  };
}

/** Rollouts that a worker holds, in any stage. */
async function countHeld(store: Store): Promise<number> {
  const { init, ready, run, evaluate } = await store.counts();
  return init + ready + run + evaluate;
}
