// Rollouts as they end, many at once over one connection: the event log says which ones ended, and each is read once. A rollout that
// ended before the log was opened, or while it was down, is read directly.

import { isTerminal, RolloutError, type RolloutId, type RolloutView } from '@millrace/protocol';
import { readEvents } from './events.ts';
import { openQueue } from './queue.ts';
import type { CallOptions, Transport } from './transport.ts';

export interface RolloutReader {
  readonly transport: Transport;
  get(id: RolloutId, options?: CallOptions): Promise<RolloutView>;
}

export interface Results extends AsyncIterable<RolloutView> {
  /** Stops waiting for these ids. */
  forget(ids: Iterable<RolloutId>): void;
  /** Reads these now, because they may have ended already. */
  check(ids: readonly RolloutId[]): void;
  /** Makes the iteration throw. */
  fail(error: unknown): void;
}

export interface ResultsOptions extends CallOptions {
  /** An event id from before any of them could have ended. */
  readonly after: number;
  /** True for an id whose submission may still be in flight. For any other, an unknown id throws `not-found`. */
  readonly mayBeMissing?: (id: RolloutId) => boolean;
}

const readsAtOnce = 16;

/** Yields each of `ids` once, in the order in which they end, then stops. Iterate it once. */
export function followResults(reader: RolloutReader, ids: Iterable<RolloutId>, options: ResultsOptions): Results {
  const pending = new Set(ids);
  const stop = new AbortController();
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, options.signal]);
  const reads = openQueue<Promise<RolloutView | undefined>>(readsAtOnce);

  /** Undefined for a rollout that has not arrived or not ended: it stays pending. */
  async function read(id: RolloutId): Promise<RolloutView | undefined> {
    if (!pending.has(id)) return undefined;
    const view = await reader.get(id, { signal }).catch((error: unknown) => {
      if (isNotFound(error) && options.mayBeMissing?.(id) === true) return undefined;
      throw error;
    });
    return view !== undefined && isTerminal(view.state) ? view : undefined;
  }

  async function readInOrder(some: Iterable<RolloutId>): Promise<void> {
    for (const id of some) await reads.push(guarded(read(id)));
  }

  async function follow(): Promise<void> {
    const onResume = () => void readInOrder([...pending]).catch(reads.fail);
    for await (const event of readEvents(reader.transport, { after: options.after, signal, onResume, skipsGone: true })) {
      const id = event.rollout_id;
      if (event.kind === 'rollout-end' && id !== undefined && pending.has(id)) await reads.push(guarded(read(id)));
    }
  }

  async function* iterate(): AsyncGenerator<RolloutView> {
    const following = follow().catch(reads.fail);
    try {
      while (pending.size > 0) {
        const view = await await reads.take();
        if (view !== undefined && pending.delete(view.id)) yield view;
      }
    } finally {
      stop.abort();
      reads.fail(stop.signal.reason);
      await following;
    }
  }

  return {
    forget(some) {
      for (const id of some) pending.delete(id);
      void reads.push(Promise.resolve(undefined)).catch(() => {}); // wakes the iteration, which may have ended
    },
    check: (some) => void readInOrder(some).catch(reads.fail),
    fail: reads.fail,
    [Symbol.asyncIterator]: iterate,
  };
}

export function isNotFound(error: unknown): boolean {
  return error instanceof RolloutError && error.code === 'not-found';
}

/** A read that fails before it is taken must not count as an unhandled rejection. */
function guarded<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {}); // thrown again where it is taken
  return promise;
}
