// What the server does on a timer: takes rollouts back from dead workers, removes old rows, and reports when the store is full. Of several
// servers, only the one that leads changes something.

import { sleep } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { messageOf } from '@millrace/protocol';
import { type RetentionAges, type Store, toRetentionAges } from '@millrace/store';
import type { ServiceConfig } from './config.ts';

interface Housekeeping {
  readonly config: Pick<ServiceConfig, 'retention' | 'pipeline'>;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly leadership: { readonly isLeader: boolean };
  /** Called after each step of retention with how long it held the store's write lock. */
  readonly onLock: (lockMs: number) => void;
}

/** Rounds of one second between two looks for old rows, and while the store is full. */
const retainRounds = { usual: 600, full: 30 };
/** Rounds between two sweeps for blobs without a row. */
const sweepRounds = 86_400;

/** Runs until `signal` aborts. */
export async function runHousekeeping(store: Store, housekeeping: Housekeeping): Promise<void> {
  const { log, signal, leadership, onLock } = housekeeping;
  const { retention, pipeline } = housekeeping.config;
  const ages = toRetentionAges(retention);
  const fullness = new FullnessLog(log);
  for (let round = 0; !signal.aborted; round += 1) {
    try {
      if (leadership.isLeader) await store.expire(pipeline);
      const isFull = fullness.note((await store.size()).full);
      if (leadership.isLeader && round % (isFull ? retainRounds.full : retainRounds.usual) === 0) {
        await retain(store, { ages, log, onLock });
        const blobs = await store.removeBlobs({ sweep: round % sweepRounds === 0 });
        if (blobs > 0) log.info('blobs-removed', { blobs });
      }
    } catch (error) {
      log.error('housekeeping-failed', { error: messageOf(error) });
    }
    await sleep(1000, { signal }).catch(() => {}); // Closing ends the pause.
  }
}

interface Retention extends Pick<Housekeeping, 'log' | 'onLock'> {
  readonly ages: RetentionAges;
}

/** Reports what it removed, and how long other writes had to wait for it. */
async function retain(store: Store, { ages, log, onLock }: Retention): Promise<void> {
  let [steps, longestLockMs, lockMs] = [0, 0, 0];
  const onStep = (ms: number) => {
    steps += 1;
    lockMs += ms;
    longestLockMs = Math.max(longestLockMs, ms);
    onLock(ms);
  };
  const rollouts = await store.retain({ ...ages, onStep });
  const round = (ms: number) => Math.round(ms * 10) / 10;
  if (rollouts > 0) log.info('retention-end', { rollouts, steps, longestLockMs: round(longestLockMs), lockMs: round(lockMs) });
}

/** Logs once when the store gets full, and once when it has space again. */
class FullnessLog {
  readonly #log: Log;
  #isFull = false;

  constructor(log: Log) {
    this.#log = log;
  }

  note(reason: string | undefined): boolean {
    const isFull = reason !== undefined;
    if (isFull && !this.#isFull)
      this.#log.error('store-full', { reason, effect: 'submissions get 507, queued rollouts wait, and running ones finish' });
    if (!isFull && this.#isFull) this.#log.info('store-has-space', { effect: 'submissions are accepted again' });
    this.#isFull = isFull;
    return isFull;
  }
}
