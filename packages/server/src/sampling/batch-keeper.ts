// Keeps the open batches filled: wakes on what the event log tells, and once a second in case it missed something. It holds
// nothing that is not in the store, so whoever starts after it goes on where it stopped.

import type { Event } from '@millrace/protocol';
import { type Clock, sleep } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { type FillDeps, fillBatch } from './fill-batch.ts';
import { readPresentVersion } from './present-version.ts';

export type KeeperDeps = FillDeps & { readonly clock: Clock; readonly log: Log };

const pollMs = 1000;
/** A look so short needs no rest. */
const briefMs = 10;

export class BatchKeeper implements AsyncDisposable {
  readonly #deps: KeeperDeps;
  #again = false;
  #working: Promise<void> | undefined;
  #stopPoll: () => void = () => {};
  readonly #closing = new AbortController();
  #idle = false;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#closing.signal.aborted) return;
    this.#wake();
    this.#stopPoll = this.#deps.clock.after(pollMs, () => this.start());
  }

  push(events: readonly Event[]): void {
    if (events.some((event) => event.kind === 'batch-open' || (!this.#idle && isNews(event)))) this.#wake();
  }

  /** One look at every open batch, the oldest first. Answers whether something changed. */
  async look(): Promise<boolean> {
    const { store } = this.#deps;
    const [batches, present] = await Promise.all([store.openBatches(), readPresentVersion(store)]);
    this.#idle = batches.length === 0;
    let changed = false;
    for (const batch of batches) {
      try {
        const [open, load] = await Promise.all([store.openGroups(batch.id), store.load()]);
        changed = (await fillBatch({ batch, open, load, present }, this.#deps)) || changed;
      } catch (error) {
        // One batch that cannot go on, for want of its task file say, must not stop the others.
        const seen = error instanceof Error ? (error.stack ?? error.message) : String(error);
        this.#deps.log.error('batch-stuck', { batch: batch.id, error: seen });
      }
    }
    return changed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#stopPoll();
    await this.#working;
  }

  #wake(): void {
    this.#again = true;
    this.#working ??= this.#work();
  }

  /** Looks take at most half of the time: what ends meanwhile is seen by the next one, all at once. */
  async #rest(tookMs: number): Promise<void> {
    if (tookMs < briefMs) return;
    await sleep(tookMs, { clock: this.#deps.clock, signal: this.#closing.signal }).catch(() => {}); // Closing ends the rest.
  }

  async #work(): Promise<void> {
    const { clock } = this.#deps;
    try {
      while (this.#again && !this.#closing.signal.aborted) {
        this.#again = false;
        const startedAt = clock.monotonic();
        if (await this.look()) this.#again = true;
        await this.#rest(clock.monotonic() - startedAt);
      }
    } catch (error) {
      this.#deps.log.error('batch-save-failed', { error: String(error) }); // The poll tries again.
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
