// Writes of an attempt to the store. A write that the storage refuses is repeated until it succeeds, so a full disk or a long lock
// costs time and no rollout.

import { type Clock, sleep } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { messageOf } from '@millrace/protocol';
import { type Claim, StoreFault } from '@millrace/store';

const firstDelayMs = 100;
const mostDelayMs = 5000;

interface SaveOptions {
  readonly claim: Claim;
  /** What is written, for the log. */
  readonly what: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the repeats; the first call is made in any case. */
  readonly signal: AbortSignal;
}

/** Rejects with an error that a repeat cannot help, or with the last fault once the signal aborts. */
export async function saveUntilDone<T>(write: () => Promise<T>, options: SaveOptions): Promise<T> {
  const { claim, what, clock, log, signal } = options;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(2 * delayMs, mostDelayMs)) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof StoreFault) || signal.aborted) throw error;
      log.error('rollout-save-failed', { rolloutId: claim.id, attempt: claim.attempt, what, retryMs: delayMs, error: messageOf(error) });
    }
    await sleep(delayMs, { clock, signal }).catch(() => {}); // An abort allows one last try.
  }
}
