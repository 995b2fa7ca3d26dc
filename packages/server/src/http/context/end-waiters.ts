// Requests that wait for a rollout to end, a batch to change, an evaluation to end, or the policy to change. Events wake them; nothing polls, and a
// client that disconnects is removed.

import type { Clock } from '@millrace/base/clock';
import type { BatchId, EvaluationId, Event, RolloutId } from '@millrace/protocol';

interface Watch extends Disposable {
  /** Resolves at the event, after `ms`, when the signal aborts, or when the service drains. */
  until(options: { readonly ms?: number; readonly signal: AbortSignal }): Promise<void>;
}

/** No rollout id starts with a slash. */
const policyKey = '/policy';

export class EndWaiters {
  readonly #clock: Clock;
  readonly #byId = new Map<string, Set<() => void>>();
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** `until` sees every end after this call, so read the state between the two. */
  watch(id: RolloutId): Watch {
    return this.#watch(id);
  }

  watchPolicy(): Watch {
    return this.#watch(policyKey);
  }

  /** Wakes when a group ends or the batch ends. */
  watchBatch(id: BatchId): Watch {
    return this.#watch(batchKey(id));
  }

  watchEvaluation(id: EvaluationId): Watch {
    return this.#watch(evaluationKey(id));
  }

  #watch(id: string): Watch {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#byId.get(id) ?? new Set();
    this.#byId.set(id, waiting.add(resolve));
    if (this.#closed) resolve();
    return {
      until: async ({ ms, signal }) => {
        if (signal.aborted) return;
        const stopTimer = ms === undefined ? undefined : this.#clock.after(ms, resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
        await promise;
        stopTimer?.();
      },
      [Symbol.dispose]: () => {
        waiting.delete(resolve);
        if (waiting.size === 0 && this.#byId.get(id) === waiting) this.#byId.delete(id);
      },
    };
  }

  push(events: readonly Event[]): void {
    for (const event of events) {
      const key = keyOf(event);
      if (key !== undefined) for (const wake of this.#byId.get(key) ?? []) wake();
    }
  }

  /** Wakes all waiting requests, and lets no later one wait. */
  close(): void {
    this.#closed = true;
    for (const waiting of this.#byId.values()) for (const wake of waiting) wake();
  }
}

function keyOf({ kind, rollout_id, data }: Event): string | undefined {
  if (kind === 'rollout-end') return rollout_id;
  if (kind === 'policy-pause' || kind === 'policy-resume') return policyKey;
  if (kind === 'evaluation-end') return evaluationKey(String(data.evaluation));
  return kind === 'batch-end' || kind === 'group-end' ? batchKey(String(data.batch)) : undefined;
}

/** No rollout id contains a slash. */
function batchKey(id: string): string {
  return `batch/${id}`;
}

function evaluationKey(id: string): string {
  return `evaluation/${id}`;
}
