// The one place that retries: only after a RolloutError marked retryable, a bounded number of times, and never after the signal aborts.

import { definedOf, RolloutError } from '@millrace/protocol';
import { type Clock, sleep } from './clock.ts';
import type { Uncharged } from './deadline.ts';

interface RetryOptions {
  /** The most calls of `work`; at least one is made. */
  readonly attempts: number;
  /** The pause after the first failure; it doubles after each further failure. */
  readonly delayMs: number;
  /** Wraps each pause. */
  readonly uncharged?: Uncharged;
  readonly signal?: AbortSignal;
  readonly clock: Clock;
}

/** Passes `work` the number of failures so far. Throws what the last call threw, or the signal's reason. */
export async function retry<T>(work: (failures: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { attempts, delayMs, signal, clock, uncharged = (wait) => wait() } = options;
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted();
    try {
      return await work(failures);
    } catch (error) {
      signal?.throwIfAborted();
      if (failures + 1 >= attempts || !(error instanceof RolloutError && error.retryable)) throw error;
    }
    await uncharged(() => sleep(delayMs * 2 ** failures, definedOf({ clock, signal })));
  }
}
