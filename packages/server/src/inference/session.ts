// One rollout's sampling: its ledger, its backend, and what happens when that one fails or the weights change. Every try goes out
// with the same ids, so a retried turn is the turn that it would have been; a turn that was cut goes on from the ids that it has.

import { randomUUID } from 'node:crypto';
import { type BackendId, RolloutError, type Sampling } from '@millrace/protocol';
import { type Clock, systemClock } from '../base/clock.ts';
import { retry } from '../base/retry.ts';
import type { Ledger } from '../trajectory/ledger.ts';
import type { Backend, Generation } from './backends/backend.ts';
import type { Pass, PolicyGate } from './policy-gate.ts';
import type { Placed } from './pool/placements.ts';
import type { BackendPool, Lease, MoveReason } from './pool/pool.ts';

export interface SessionOptions {
  readonly ledger: Ledger;
  readonly pool: BackendPool;
  /** Passed before each call; absent where the weights never change. */
  readonly gate?: PolicyGate;
  /** How many policy versions the first sampled token may be behind the present one. */
  readonly maxStaleness?: number;
  /** The same for every call, so that outer routers keep the rollout on one server. */
  readonly sessionId: string;
  /** Whose session it is, by which all workers place it; absent where the pool is not shared. */
  readonly rollout?: Placed;
  /** Wraps each wait for a backend or for new weights and each pause after a failed call, which no clock may charge. */
  readonly uncharged?: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Gives back what a call took that brought nothing: the agent pays only for those that were answered. */
  readonly refund?: (ms: number) => void;
  readonly clock?: Clock;
  /** Calls at most without a token between them, and the pause after the first that fails. */
  readonly attempts?: number;
  readonly delayMs?: number;
}

export interface SampleOptions {
  readonly sampling: Sampling;
  readonly maxTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly signal: AbortSignal;
  /** Puts a part of the turn that was cut into the ledger, from which the rest is sampled. Where it is absent, the part is lost. */
  readonly onPart?: (part: SampledTurn) => Promise<void> | void;
}

export interface SampledTurn extends Generation {
  readonly backend: BackendId;
  /** The weights at the call's start and at its end. */
  readonly policyVersions: { readonly first: number; readonly last: number };
  /** Calls before this one, from the same ids, that brought nothing. */
  readonly retries: number;
}

interface Admitted {
  readonly lease: Lease;
  readonly backend: Backend;
  readonly pass: Pass | undefined;
}

/** One part of a turn on its way: how many tokens are still to come, and how many calls brought none of them. */
interface Wanted extends SampleOptions {
  retries: number;
}

export class Session implements Disposable {
  readonly ledger: Ledger;
  readonly #options: SessionOptions;
  #lease: Lease | undefined;
  #flushes: number | undefined;

  constructor(options: SessionOptions) {
    this.ledger = options.ledger;
    this.#options = options;
  }

  /** Continues the ledger's ids, which only `onPart` changes. Throws what the last try threw, `too-stale`, or the signal's reason. */
  async sample(options: SampleOptions): Promise<SampledTurn> {
    const { attempts = 4, delayMs = 250, clock = systemClock } = this.#options;
    const { signal, onPart } = options;
    const tries = { attempts, delayMs, signal, clock, uncharged: this.#uncharged };
    let wanted: Wanted = { ...options, retries: 0 };
    for (;;) {
      await this.#waitForWeights(signal);
      const part = await retry((failures) => this.#try(wanted, failures > 0), tries);
      if (part && part.finishReason !== 'abort') return part;
      if (part && onPart) {
        await onPart(part);
        wanted = { ...options, maxTokens: wanted.maxTokens - part.tokenIds.length, retries: 0 };
      } else wanted.retries += 1;
    }
  }

  /** Gives the backend back. */
  [Symbol.dispose](): void {
    this.#lease?.[Symbol.dispose]();
    this.#lease = undefined;
  }

  get #uncharged(): <T>(wait: () => Promise<T>) => Promise<T> {
    return this.#options.uncharged ?? ((wait) => wait());
  }

  /** Also ends a rollout whose first token is too old by now. Outside of the retries: it begins again from its opening, not from here. */
  async #waitForWeights(signal: AbortSignal): Promise<void> {
    const { gate, maxStaleness = Number.POSITIVE_INFINITY } = this.#options;
    if (gate && !gate.isOpen) await this.#uncharged(() => gate.opened({ signal }));
    const { first, last } = this.ledger.policyVersions ?? {};
    if (first === undefined || last === undefined) return;
    // A server may name newer weights than anyone told us of.
    const present = Math.max(gate?.policyVersion ?? 0, last);
    if (present - first <= maxStaleness) return;
    const ages = `begun at policy version ${first}, ${present - first} behind the present ${present}`;
    throw new RolloutError('too-stale', `the rollout was ${ages}; at most ${maxStaleness} are allowed`);
  }

  /** Absent when the call was cut before a token came. */
  async #try(wanted: Wanted, hasFailed: boolean): Promise<SampledTurn | undefined> {
    const { clock = systemClock, refund } = this.#options;
    const admitted = await this.#admit(wanted.signal, hasFailed);
    using _ = admitted.pass;
    const startedAt = clock.monotonic();
    try {
      const part = await this.#call(admitted, wanted);
      if (!part) refund?.(clock.monotonic() - startedAt);
      return part;
    } catch (error) {
      wanted.retries += 1;
      if (!wanted.signal.aborted) refund?.(clock.monotonic() - startedAt);
      throw error;
    }
  }

  async #call({ lease, backend, pass }: Admitted, wanted: Wanted): Promise<SampledTurn | undefined> {
    const { sampling, maxTokens, stopTokenIds, signal, retries } = wanted;
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
      ...(pass ? { cut: pass.cut } : {}),
    });
    const last = lease.backend?.policyVersion ?? first;
    const finishReason = toFinishReason(generation, wanted);
    if (finishReason !== 'abort' || generation.tokenIds.length > 0)
      return { policyVersions: { first, last }, ...generation, finishReason, backend: backend.id, retries };
    if (pass?.cut.aborted) return undefined;
    throw new RolloutError('backend-failed', `${backend.id} aborted the generation before its first token`);
  }

  /** A backend and the right to call it. Whoever waits for a backend holds no pass: a pause need not wait for it. */
  async #admit(signal: AbortSignal, hasFailed: boolean): Promise<Admitted> {
    const { gate } = this.#options;
    for (let reason: MoveReason | undefined = hasFailed ? 'failed' : undefined; ; ) {
      const lease = await this.#hold(signal, reason);
      if (gate && !gate.isOpen) await this.#uncharged(() => gate.opened({ signal }));
      const pass = gate?.enter();
      reason = this.#hearFlushes(pass) ? 'flushed' : undefined;
      const { backend } = lease;
      if (reason === undefined && backend && (pass || !gate)) return { lease, backend, pass };
      pass?.[Symbol.dispose]();
    }
  }

  /** True once after the caches were flushed: then no backend is better than another. */
  #hearFlushes(pass: Pass | undefined): boolean {
    const before = this.#flushes;
    this.#flushes = pass?.flushes ?? before;
    return before !== undefined && before !== this.#flushes;
  }

  /** The backend of the turn before, unless it has left or there is a reason to ask for another. */
  async #hold(signal: AbortSignal, reason: MoveReason | undefined): Promise<Lease> {
    const { pool, rollout } = this.#options;
    const options = { signal, tokens: this.ledger.length, ...(rollout ? { rollout } : {}) };
    if (this.#lease) {
      const lease = this.#lease;
      const why = reason ?? (pool.isDue(lease) ? 'busy' : undefined);
      if (why) this.#lease = await this.#uncharged(() => pool.reacquire(lease, { ...options, reason: why }));
    }
    for (;;) {
      const lease = this.#lease;
      if (lease?.backend) return lease;
      this.#lease = await this.#uncharged(() => (lease ? pool.reacquire(lease, { ...options, reason: 'failed' }) : pool.acquire(options)));
    }
  }
}

/** A turn that was cut behind its last token is whole: nothing may be sampled after its end. */
function toFinishReason({ tokenIds, finishReason }: Generation, { maxTokens, stopTokenIds }: SampleOptions): Generation['finishReason'] {
  if (finishReason !== 'abort') return finishReason;
  if (stopTokenIds.includes(tokenIds.at(-1) ?? -1)) return 'stop';
  return tokenIds.length === maxTokens ? 'length' : 'abort';
}
