// One rollout's sampling: its ledger, its backend, and what happens when that one fails. Every try goes out with the same ids,
// so a retried turn is the turn that it would have been.

import { randomUUID } from 'node:crypto';
import { type BackendId, RolloutError, type Sampling } from '@millrace/protocol';
import { type Clock, systemClock } from '../base/clock.ts';
import { retry } from '../base/retry.ts';
import type { Ledger } from '../trajectory/ledger.ts';
import type { Backend, Generation } from './backend.ts';
import type { Placed } from './placements.ts';
import type { BackendPool, Lease } from './pool.ts';

export interface SessionOptions {
  readonly ledger: Ledger;
  readonly pool: BackendPool;
  /** The same for every call, so that outer routers keep the rollout on one server. */
  readonly sessionId: string;
  /** Whose session it is, by which all workers place it; absent where the pool is not shared. */
  readonly rollout?: Placed;
  /** Wraps each wait for a backend to exist and each pause after a failed call, which no clock may charge. */
  readonly uncharged?: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Gives back what a failed call took: the agent pays only for those that were answered. */
  readonly refund?: (ms: number) => void;
  readonly clock?: Clock;
  /** Calls per turn at most, and the pause after the first that fails. */
  readonly attempts?: number;
  readonly delayMs?: number;
}

export interface SampleOptions {
  readonly sampling: Sampling;
  readonly maxTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly signal: AbortSignal;
}

export interface SampledTurn extends Generation {
  readonly backend: BackendId;
  /** The weights at the call's start and at its end. */
  readonly policyVersions: { readonly first: number; readonly last: number };
  /** Failed calls before this one. */
  readonly retries: number;
}

interface Held {
  readonly lease: Lease;
  readonly backend: Backend;
}

export class Session implements Disposable {
  readonly ledger: Ledger;
  readonly #options: SessionOptions;
  #lease: Lease | undefined;

  constructor(options: SessionOptions) {
    this.ledger = options.ledger;
    this.#options = options;
  }

  /** Continues the ledger's ids, which it does not change. Throws what the last try threw, or the signal's reason. */
  async sample(options: SampleOptions): Promise<SampledTurn> {
    const { attempts = 4, delayMs = 250, clock = systemClock, uncharged = (wait) => wait() } = this.#options;
    const { signal } = options;
    return await retry((failures) => this.#try(options, failures), { attempts, delayMs, signal, clock, uncharged });
  }

  /** Gives the backend back. */
  [Symbol.dispose](): void {
    this.#lease?.[Symbol.dispose]();
    this.#lease = undefined;
  }

  async #try(options: SampleOptions, failures: number): Promise<SampledTurn> {
    const held = await this.#hold(options.signal, failures > 0);
    const { clock = systemClock, refund } = this.#options;
    const startedAt = clock.monotonic();
    try {
      return await this.#call(held, options, failures);
    } catch (error) {
      if (!options.signal.aborted) refund?.(clock.monotonic() - startedAt);
      throw error;
    }
  }

  async #call({ lease, backend }: Held, options: SampleOptions, failures: number): Promise<SampledTurn> {
    const { sampling, maxTokens, stopTokenIds, signal } = options;
    const { sessionId } = this.#options;
    const first = backend.policyVersion;
    const generation = await backend.generate({
      promptJson: this.ledger.promptJson,
      promptTokens: this.ledger.length,
      sampling,
      maxTokens,
      stopTokenIds,
      sessionId,
      requestId: `${sessionId}-${randomUUID()}`,
      signal,
    });
    // The server gave up on the request, as at a weight swap: what it had so far is no turn of the policy.
    if (generation.finishReason === 'abort') throw new RolloutError('backend-failed', `${backend.id} aborted the generation`);
    const last = lease.backend?.policyVersion ?? first;
    return { policyVersions: { first, last }, ...generation, backend: backend.id, retries: failures };
  }

  /** The backend of the turn before, unless it has failed or left. */
  async #hold(signal: AbortSignal, failed: boolean): Promise<Held> {
    const { pool, uncharged = (wait) => wait() } = this.#options;
    const options = { signal, tokens: this.ledger.length, ...(this.#options.rollout ? { rollout: this.#options.rollout } : {}) };
    for (let isPlaced = false; ; isPlaced = true) {
      const { backend } = this.#lease ?? {};
      const isDue = this.#lease !== undefined && backend !== undefined && !failed && !isPlaced && pool.isDue(this.#lease);
      if (this.#lease && backend && !failed && !isDue) return { lease: this.#lease, backend };
      const held = this.#lease;
      this.#lease = await uncharged(() => (held ? pool.reacquire(held, { ...options, isDue }) : pool.acquire(options)));
      failed = false;
    }
  }
}
