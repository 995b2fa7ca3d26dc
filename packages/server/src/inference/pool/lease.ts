// A rollout's place on a backend. Every call through it is counted and tells how the backend fares; the rollout's worker holds
// one lease from its first turn to its last.

import { type BackendId, RolloutError } from '@millrace/protocol';
import type { Clock } from '../../base/clock.ts';
import type { Backend, BackendRecord, GenerateRequest, Generation } from '../backends/backend.ts';
import { type HealthWatch, judgeFailure, type Outcome } from './health.ts';
import type { Placed } from './placements.ts';
import type { Traffic } from './traffic.ts';

/** A rollout's place on a backend. Disposing gives it back; twice is once. */
export interface Lease extends Disposable {
  readonly id: BackendId;
  /** As the record says now, with its present policy version; absent when the backend has left the pool or is broken. */
  readonly backend: Backend | undefined;
}

/** A backend of the pool, shared by its leases. */
export interface Entry {
  readonly id: BackendId;
  record: BackendRecord;
  backend: Backend;
  /** Leases of this process. */
  held: number;
  /** Calls of this process that are being answered. */
  calls: number;
  hasLeft: boolean;
}

export interface LeaseDeps {
  readonly clock: Clock;
  readonly traffic: Traffic;
  readonly health: HealthWatch | undefined;
  onEnd(lease: PoolLease): void;
}

export class PoolLease implements Lease {
  readonly entry: Entry;
  readonly rollout: Placed | undefined;
  /** Backends that it left because they were too busy. */
  readonly left: readonly BackendId[];
  /** Turns since it came here or last asked to leave. */
  turns = 0;
  /** How its last call ended, and how many in a row found the backend busy. */
  last: { readonly outcome: Outcome; readonly retryAfterMs?: number } = { outcome: 'answered' };
  busyCalls = 0;
  readonly #deps: LeaseDeps;
  #isHeld = true;
  #watched: { readonly inner: Backend; readonly outer: Backend } | undefined;

  constructor(place: { readonly entry: Entry; readonly rollout?: Placed; readonly left?: readonly BackendId[] }, deps: LeaseDeps) {
    this.entry = place.entry;
    this.rollout = place.rollout;
    this.left = place.left ?? [];
    this.#deps = deps;
    this.entry.held += 1;
  }

  get id(): BackendId {
    return this.entry.id;
  }

  get backend(): Backend | undefined {
    const { hasLeft, record, backend } = this.entry;
    if (hasLeft || record.health?.brokenAtMs !== undefined) return undefined;
    if (this.#watched?.inner !== backend) this.#watched = { inner: backend, outer: this.#watch(backend) };
    return this.#watched.outer;
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.entry.held -= 1;
    this.#deps.onEnd(this);
  }

  #watch(backend: Backend): Backend {
    const { id, policyVersion, logprobs } = backend;
    return { id, policyVersion, logprobs, generate: (request) => this.#generate(backend, request) };
  }

  async #generate(backend: Backend, request: GenerateRequest): Promise<Generation> {
    const { clock, traffic } = this.#deps;
    const { entry } = this;
    if (this.last.outcome !== 'answered') traffic.countRetry(entry.id);
    const startedAt = clock.monotonic();
    entry.calls += 1;
    try {
      const generation = await backend.generate(request);
      traffic.countAnswer(entry.id, { request, generation, ms: clock.monotonic() - startedAt });
      this.#hear('answered');
      return generation;
    } catch (error) {
      // A rollout that was stopped says nothing of its backend.
      if (request.signal.aborted || !(error instanceof RolloutError)) throw error;
      traffic.countError(entry.id, error);
      this.#hear(judgeFailure(error), error);
      throw error;
    } finally {
      entry.calls -= 1;
    }
  }

  #hear(outcome: Outcome, error?: RolloutError): void {
    const retryAfterMs = error?.details?.retry_after_ms;
    this.last = { outcome, ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}) };
    this.busyCalls = outcome === 'busy' ? this.busyCalls + 1 : 0;
    this.#deps.health?.hear(this.entry.id, outcome, error);
  }
}
