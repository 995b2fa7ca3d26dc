// Writes a worker's finished turns and its traffic to the event log in batches, so that no turn needs its own commit.

import type { Clock } from '@millrace/base/clock';
import type { BackendId, RolloutId, WorkerId } from '@millrace/protocol';
import type { Claim, NewEvent, WorkerStore } from '@millrace/store';
import type { TurnReport } from '../agent/agent-options.ts';
import type { Traffic } from '../inference/pool/traffic.ts';

/** Between two writes of finished turns: less often while the store is slow, in larger writes. */
export const flushPause = { leastMs: 100, mostMs: 2000 };
/** How often the traffic of each backend is written. */
const trafficMs = 2000;
/** A context is written again when it has grown by this factor: it breaks ties between backends, and divides a KV cache among workers. */
const growth = 1.1;

interface KeptContext {
  readonly claim: Claim;
  tokens: number;
  writtenTokens: number;
}

export class TurnReporter {
  readonly #store: WorkerStore;
  readonly #clock: Clock;
  readonly #traffic: Traffic;
  #events: NewEvent[] = [];
  #contexts = new Map<RolloutId, { readonly claim: Claim; readonly tokens: number }>();
  readonly #kept = new Map<RolloutId, KeptContext>();
  #trafficAt: number;

  constructor({ store, clock, traffic }: { readonly store: WorkerStore; readonly clock: Clock; readonly traffic: Traffic }) {
    this.#store = store;
    this.#clock = clock;
    this.#traffic = traffic;
    this.#trafficAt = clock.monotonic();
  }

  add(claim: Claim, worker: WorkerId, report: TurnReport): void {
    const { turn, sampledTokens, contextTokens, modelMs, toolMs, calls, repeats } = report;
    const repeated = repeats > 1 ? { repeats } : {};
    const data = {
      turn,
      sampled_tokens: sampledTokens,
      context_tokens: contextTokens,
      model_ms: modelMs,
      tool_ms: toolMs,
      calls,
      ...repeated,
    };
    this.#events.push({ kind: 'turn-end', rolloutId: claim.id, workerId: worker, data });
    const { id, attempt } = claim;
    const kept = this.#kept.get(id) ?? { claim: { id, worker: claim.worker, attempt }, tokens: 0, writtenTokens: 0 };
    this.#kept.set(id, kept);
    kept.tokens = contextTokens;
    if (contextTokens >= growth * kept.writtenTokens) this.#write(kept, contextTokens);
  }

  /** Their contexts count as nothing until they are no longer among these. */
  noteAsleep(rollouts: ReadonlySet<string>): void {
    for (const [id, kept] of this.#kept) {
      if (rollouts.has(id) !== (kept.writtenTokens === 0)) this.#write(kept, rollouts.has(id) ? 0 : kept.tokens);
    }
  }

  forget(id: RolloutId): void {
    this.#kept.delete(id);
  }

  #write(kept: KeptContext, tokens: number): void {
    kept.writtenTokens = tokens;
    this.#contexts.set(kept.claim.id, { claim: kept.claim, tokens });
  }

  /** Writes everything that is waiting; the traffic only every `trafficMs`, or at the end. */
  async flush(worker: WorkerId, isLast = false): Promise<void> {
    const events = this.#events;
    const contexts = [...this.#contexts.values()];
    this.#events = [];
    this.#contexts = new Map();
    const errors: { backend: BackendId; message: string }[] = [];
    const now = this.#clock.monotonic();
    if (isLast || now - this.#trafficAt >= trafficMs) {
      this.#trafficAt = now;
      const taken = this.#traffic.take();
      for (const [backendId, count] of taken.counts)
        events.push({ kind: 'backend-traffic', backendId, workerId: worker, data: { ...count } });
      for (const [backend, message] of taken.errors) errors.push({ backend, message });
    }
    // Both are one commit: the store's writer takes all writes that wait.
    const notes = contexts.length + errors.length > 0 ? [this.#store.noteTraffic({ contexts, errors })] : [];
    await Promise.all([...notes, ...(events.length > 0 ? [this.#store.appendEvents(events)] : [])]);
  }
}
