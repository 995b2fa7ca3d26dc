// The one place that tries again: only after a RolloutError that is marked retryable, a bounded number of times, and never past its signal.

import { RolloutError } from '@millrace/protocol';
import { type Clock, sleep, systemClock } from './clock.ts';

export interface RetryOptions {
  /** How often `work` is called at most; at least once. */
  readonly attempts: number;
  /** The pause after the first failure; it doubles after each further one. */
  readonly delayMs: number;
  /** Wraps each pause. */
  readonly uncharged?: <T>(wait: () => Promise<T>) => Promise<T>;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/** `work` is told how many calls failed before it. Throws what the last call threw, or the signal's reason. */
export async function retry<T>(work: (failures: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { attempts, delayMs, signal, clock = systemClock, uncharged = (wait) => wait() } = options;
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted();
    try {
      return await work(failures);
    } catch (error) {
      signal?.throwIfAborted();
      if (failures + 1 >= attempts || !(error instanceof RolloutError && error.retryable)) throw error;
    }
    await uncharged(() => sleep(delayMs * 2 ** failures, { clock, ...(signal ? { signal } : {}) }));
  }
}
