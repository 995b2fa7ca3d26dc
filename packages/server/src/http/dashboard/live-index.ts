// Keeps the index of rollouts true to the store while a dashboard is open: reads the newest rollouts page by page when the first one is
// opened, follows the event log, and forgets everything some minutes after the last request.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { RolloutIndex } from '@millrace/dashboard';
import type { Event, RolloutId } from '@millrace/protocol';
import { messageOf, rolloutStates } from '@millrace/protocol';
import { type Store, toRolloutView } from '@millrace/store';
import { z } from 'zod';

/** The newest ones; more would take the server's memory. */
const mostRollouts = 100_000;
const pageSize = 500;
const readAtOnce = 32;
const idleMs = 300_000;
/** Deleted rollouts have no event, so all are read again now and then. */
const sweepMs = 600_000;

const moveData = z.object({ to: z.enum(rolloutStates), attempt: z.int() });

export class LiveIndex {
  readonly #store: Pick<Store, 'list' | 'get'>;
  readonly #clock: Clock;
  readonly #log: Log;
  #index: RolloutIndex | undefined;
  #usedAt = 0;
  #sweptAt = 0;
  #sweeping = false;
  #reading = false;
  readonly #changed = new Set<RolloutId>();

  constructor({ store, clock, log }: { readonly store: Pick<Store, 'list' | 'get'>; readonly clock: Clock; readonly log: Log }) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** May still be filling: it then says so. */
  open(): RolloutIndex {
    this.#usedAt = this.#clock.monotonic();
    this.#index ??= new RolloutIndex(() => this.#clock.monotonic());
    if (!this.#sweeping && (!this.#index.complete || this.#usedAt - this.#sweptAt > sweepMs)) void this.#sweep(this.#index);
    return this.#index;
  }

  push(events: readonly Event[]): void {
    const index = this.#index;
    if (index === undefined) return;
    if (this.#clock.monotonic() - this.#usedAt > idleMs && !this.#sweeping) {
      this.#index = undefined;
      this.#changed.clear();
      return;
    }
    for (const { kind, rollout_id: id, data } of events) {
      if (id === undefined) continue;
      if (kind === 'rollout-queue' || kind === 'rollout-end') this.#changed.add(id);
      if (kind !== 'rollout-move') continue;
      const { success, data: move } = moveData.safeParse(data);
      if (!success || !index.move(id, move.to, move.attempt)) this.#changed.add(id);
    }
    if (!this.#reading) void this.#readChanged(index);
  }

  async #sweep(index: RolloutIndex): Promise<void> {
    this.#sweeping = true;
    try {
      const before = new Set(index.ids());
      let after: string | undefined;
      let read = 0;
      do {
        const page = await this.#store.list({ order: 'newest', limit: pageSize, ...(after === undefined ? {} : { after }) });
        for (const record of page.rollouts) {
          before.delete(record.id);
          // A rollout that is known already came from an event, which is newer than this page.
          if (!index.has(record.id)) index.set(toRolloutView(record), { older: true });
        }
        read += page.rollouts.length;
        after = page.next;
      } while (after !== undefined && read < mostRollouts);
      for (const id of before) index.delete(id);
      index.markComplete();
      this.#sweptAt = this.#clock.monotonic();
    } catch (error) {
      this.#log.warn('dashboard-index-failed', { error: messageOf(error) });
    } finally {
      this.#sweeping = false;
    }
  }

  async #readChanged(index: RolloutIndex): Promise<void> {
    this.#reading = true;
    try {
      while (this.#changed.size > 0) {
        const ids = [...this.#changed].slice(0, readAtOnce);
        for (const id of ids) this.#changed.delete(id);
        const records = await Promise.all(ids.map((id) => this.#store.get(id)));
        for (const record of records) if (record !== undefined) index.set(toRolloutView(record));
      }
    } catch (error) {
      this.#log.warn('dashboard-index-failed', { error: messageOf(error) });
    } finally {
      this.#reading = false;
    }
  }
}
