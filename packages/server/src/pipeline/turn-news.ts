// What a worker tells of its turns: gathered, and written in bunches, so that a turn costs no commit of its own.

import type { RolloutId, WorkerId } from '@millrace/protocol';
import type { TurnReport } from '../agent/turn-loop.ts';
import type { Clock } from '../base/clock.ts';
import type { Traffic } from '../inference/pool/traffic.ts';
import type { Claim, NewEvent, Store } from '../store/store.ts';

/** The traffic of each backend is told so often. */
const trafficMs = 2000;
/** A context is noted again when it has grown by so much: it only breaks ties between backends. */
const growth = 1.5;

export class TurnNews {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #traffic: Traffic;
  #events: NewEvent[] = [];
  #contexts = new Map<RolloutId, { readonly claim: Claim; readonly tokens: number }>();
  readonly #noted = new Map<RolloutId, number>();
  #trafficAt: number;

  constructor({ store, clock, traffic }: { readonly store: Store; readonly clock: Clock; readonly traffic: Traffic }) {
    this.#store = store;
    this.#clock = clock;
    this.#traffic = traffic;
    this.#trafficAt = clock.monotonic();
  }

  add(claim: Claim, worker: WorkerId, report: TurnReport): void {
    const { turn, sampledTokens, contextTokens, modelMs, toolMs, calls } = report;
    const data = { turn, sampled_tokens: sampledTokens, context_tokens: contextTokens, model_ms: modelMs, tool_ms: toolMs, calls };
    this.#events.push({ kind: 'turn-end', rolloutId: claim.id, workerId: worker, data });
    if (contextTokens < growth * (this.#noted.get(claim.id) ?? 0)) return;
    this.#noted.set(claim.id, contextTokens);
    const { id, attempt } = claim;
    this.#contexts.set(id, { claim: { id, worker: claim.worker, attempt }, tokens: contextTokens });
  }

  forget(id: RolloutId): void {
    this.#noted.delete(id);
  }

  /** All that there is; of the traffic only when it is time, or when it is the last word. */
  async tell(worker: WorkerId, isLast = false): Promise<void> {
    const events = this.#events;
    const contexts = [...this.#contexts.values()];
    this.#events = [];
    this.#contexts = new Map();
    const errors: { backend: NonNullable<NewEvent['backendId']>; message: string }[] = [];
    const now = this.#clock.monotonic();
    if (isLast || now - this.#trafficAt >= trafficMs) {
      this.#trafficAt = now;
      const taken = this.#traffic.take();
      for (const [backendId, count] of taken.counts)
        events.push({ kind: 'backend-traffic', backendId, workerId: worker, data: { ...count } });
      for (const [backend, message] of taken.errors) errors.push({ backend, message });
    }
    // Both are one commit: the store's writer takes all that waits.
    const notes = contexts.length + errors.length > 0 ? [this.#store.noteTraffic({ contexts, errors })] : [];
    await Promise.all([...notes, ...(events.length > 0 ? [this.#store.appendEvents(events)] : [])]);
  }
}
