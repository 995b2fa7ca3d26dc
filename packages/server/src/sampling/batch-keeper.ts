// Keeps the open batches filled: wakes on what the event log tells, and once a second in case it missed something. It holds
// nothing that is not in the store, so whoever starts after it goes on where it stopped.

import type { Event } from '@millrace/protocol';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { type FillDeps, refillBatch, settleGroups } from './fill-batch.ts';
import { readPresentVersion } from './present-version.ts';

export type KeeperDeps = FillDeps & { readonly clock: Clock; readonly log: Log };

const pollMs = 1000;

export class BatchKeeper implements AsyncDisposable {
  readonly #deps: KeeperDeps;
  #again = false;
  #working: Promise<void> | undefined;
  #stopPoll: () => void = () => {};
  #closed = false;
  #idle = false;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#closed) return;
    this.#wake();
    this.#stopPoll = this.#deps.clock.after(pollMs, () => this.start());
  }

  push(events: readonly Event[]): void {
    if (events.some((event) => event.kind === 'batch-open' || (!this.#idle && isNews(event)))) this.#wake();
  }

  /** One look at every open batch, the oldest first. Answers whether something changed. */
  async look(): Promise<boolean> {
    const { store } = this.#deps;
    const ids = (await store.openBatches()).map(({ id }) => id);
    this.#idle = ids.length === 0;
    let changed = false;
    for (const id of ids) {
      try {
        changed = (await this.#lookAt(id)) || changed;
      } catch (error) {
        // One batch that cannot go on, for want of its task file say, must not stop the others.
        this.#deps.log.error('batch-stuck', { batch: id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
      }
    }
    return changed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#stopPoll();
    await this.#working;
  }

  async #lookAt(id: string): Promise<boolean> {
    const { store } = this.#deps;
    const read = async () => (await store.openBatches()).find((batch) => batch.id === id);
    const [before, present] = await Promise.all([read(), readPresentVersion(store)]);
    if (before === undefined) return false;
    const settled = await settleGroups({ batch: before, present }, store);
    const batch = settled ? await read() : before;
    return (batch !== undefined && (await refillBatch({ batch, present }, this.#deps))) || settled;
  }

  #wake(): void {
    this.#again = true;
    this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    try {
      while (this.#again && !this.#closed) {
        this.#again = false;
        if (await this.look()) this.#again = true;
      }
    } catch (error) {
      this.#deps.log.error('batches-unkept', { error: String(error) }); // The poll tries again.
    } finally {
      this.#working = undefined;
    }
  }
}

/** An end settles groups and gives room, as does a rollout that leaves its run slot; the rest may lift what held a batch back. */
function isNews({ kind, data }: Event): boolean {
  if (kind === 'rollout-move') return data.to === 'evaluate';
  return kind === 'rollout-end' || kind === 'batch-tasks' || kind === 'batch-end' || kind === 'backend-join' || kind === 'worker-start';
}
