// Keeps the open batches filled and begins the tasks of evaluations. It wakes on events, and once a second in case one was missed. All its state is in the store, so
// the next process continues where this one stopped.

import { type Clock, sleep } from '@millrace/base/clock';
import { type Log, stackOf } from '@millrace/base/log';
import { type BatchId, type Event, messageOf } from '@millrace/protocol';
import type { OpenBatch } from '@millrace/store';
import { readCurrentVersion } from './current-version.ts';
import { beginEvaluationTasks } from './evaluation/begin-tasks.ts';
import { type FillDeps, fillBatch } from './fill-batch.ts';

type KeeperDeps = FillDeps & { readonly clock: Clock; readonly log: Log };

const pollMs = 1000;
/** A round this short needs no pause. */
const briefMs = 10;

export class BatchKeeper implements AsyncDisposable {
  readonly #deps: KeeperDeps;
  #again = false;
  #working: Promise<void> | undefined;
  #stopPoll: () => void = () => {};
  readonly #closing = new AbortController();
  #idle = false;
  /** The error of each batch that was logged last. */
  readonly #stuck = new Map<BatchId, string>();
  #paused: ReadonlySet<BatchId> = new Set();

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#closing.signal.aborted) return;
    this.#wake();
    this.#stopPoll = this.#deps.clock.after(pollMs, () => this.start());
  }

  push(events: readonly Event[]): void {
    if (events.some((event) => isOpening(event) || (!this.#idle && isRelevant(event)))) this.#wake();
  }

  /** Advances every evaluation and every open batch, the oldest first. Returns whether something changed. */
  async advance(): Promise<boolean> {
    const { store } = this.#deps;
    const [batches, evaluations, currentVersion] = await Promise.all([
      store.openBatches(),
      store.unbegunEvaluations(),
      readCurrentVersion(store),
    ]);
    this.#idle = batches.length + evaluations.length === 0;
    this.#logPauses(batches);
    let changed = await beginEvaluationTasks(evaluations, this.#deps);
    for (const batch of batches) {
      try {
        const [open, load] = await Promise.all([store.openGroups(batch.id), store.load(batch.id)]);
        changed = (await fillBatch({ batch, open, load, currentVersion, nowMs: this.#deps.clock.now() }, this.#deps)) || changed;
      } catch (error) {
        // A batch that cannot continue, for example because its task file is missing, must not stop the others.
        this.#logStuck(batch.id, error);
      }
    }
    return changed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#stopPoll();
    await this.#working;
  }

  #logPauses(batches: readonly OpenBatch[]): void {
    const paused = new Map(batches.flatMap(({ id, paused: why }) => (why ? [[id, why.reason]] : [])));
    for (const [batch, reason] of paused) if (!this.#paused.has(batch)) this.#deps.log.warn('batch-pause', { batch, reason });
    for (const batch of this.#paused) if (!paused.has(batch)) this.#deps.log.info('batch-resume', { batch });
    this.#paused = new Set(paused.keys());
  }

  /** Once for each reason: the batch is tried every second. */
  #logStuck(batch: BatchId, error: unknown): void {
    if (this.#stuck.get(batch) === messageOf(error)) return;
    this.#stuck.set(batch, messageOf(error));
    this.#deps.log.error('batch-stuck', { batch, error: stackOf(error) });
  }

  #wake(): void {
    this.#again = true;
    this.#working ??= this.#work();
  }

  /** Rounds take at most half of the time: what ends in the meantime is handled together in the next one. */
  async #pause(tookMs: number): Promise<void> {
    if (tookMs < briefMs) return;
    await sleep(tookMs, { clock: this.#deps.clock, signal: this.#closing.signal }).catch(() => {}); // closing ends the pause
  }

  async #work(): Promise<void> {
    const { clock } = this.#deps;
    try {
      while (this.#again && !this.#closing.signal.aborted) {
        this.#again = false;
        const startedAt = clock.monotonic();
        if (await this.advance()) this.#again = true;
        await this.#pause(clock.monotonic() - startedAt);
      }
    } catch (error) {
      this.#deps.log.error('batch-save-failed', { error: messageOf(error) }); // the poll tries again
    } finally {
      this.#working = undefined;
    }
  }
}

function isOpening({ kind }: Event): boolean {
  return kind === 'batch-open' || kind === 'evaluation-open';
}

/** The end of a rollout, or of its run stage, can settle groups and frees slots; the other kinds can unblock a batch. */
function isRelevant({ kind, data }: Event): boolean {
  if (kind === 'rollout-move') return data.to === 'evaluate';
  return kind === 'rollout-end' || kind.startsWith('batch-') || kind === 'backend-join' || kind === 'worker-start';
}
