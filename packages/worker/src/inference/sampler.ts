// One rollout's sampling: the way of a token from the ledger's ids to a sampled turn. Every attempt sends the same ids, so a
// retried turn is the turn that it would have been; a turn that was cut continues from the tokens that it has.
//
//   sample ── waits while the policy is paused, ends a rollout that is too stale
//     │  ▲
//     ▼  │ a failed call, up to `attempts` times; a call that was cut, any number of times
//   place ──── keeps, moves or waits for a backend and for room in its KV cache,
//     │        then passes the policy gate                                             pool, cache, gate
//     │
//     ▼
//   call ───── one request; a cut keeps the tokens that arrived                         backend
//     │
//     ▼
//   report ─── once per call: answered, failed or stopped                               lease → traffic, health

import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '@millrace/base/clock';
import type { Uncharged } from '@millrace/base/deadline';
import { retry } from '@millrace/base/retry';
import { errorTypeOf } from '@millrace/base/trace-span';
import type { Backend, Generation } from '@millrace/engines';
import type { Ledger } from '@millrace/model';
import { definedOf, RolloutError } from '@millrace/protocol';
import type { PlacedRollout } from '@millrace/store';
import { toEngineFacts } from './engine-facts.ts';
import type { Pass, PolicyGate } from './policy-gate.ts';
import type { BackendCall, BackendLease } from './pool/lease.ts';
import type { BackendPool, MoveReason } from './pool/pool.ts';
import type { SampledTurn, TurnRequest } from './sampled-turn.ts';
import { toCallAttributes, toCallSpan } from './span-names.ts';
import { checkStaleness } from './staleness.ts';
import { openStreamedPart } from './streamed-part.ts';
import { endAtStop, isDivisible, type Remainder, toEnd, toRest } from './turn-rest.ts';
import { splitByVersion } from './version-parts.ts';

export interface SamplerOptions {
  readonly ledger: Ledger;
  readonly pool: BackendPool;
  /** Passed before each call; absent if the weights never change. */
  readonly gate?: PolicyGate;
  /** How many policy versions the first sampled token may be behind the current one. */
  readonly maxStaleness?: number;
  /** The same for every call, so that a router in front of the servers keeps the rollout on one of them. */
  readonly sessionId: string;
  /** By which all workers place it; absent if the pool is not shared. */
  readonly rollout?: PlacedRollout;
  /** Siblings of a group share their opening, and older rollouts go first where turns wait for a cache. */
  readonly group?: string;
  readonly createdAtMs?: number;
  /** Wraps each wait for a backend, for new weights and before a retry. The agent's clock stands still meanwhile. */
  readonly uncharged?: Uncharged;
  /** Gives back the time of a call without tokens: the agent pays only for calls that gave it some. */
  readonly refund?: (ms: number) => void;
  readonly clock?: Clock;
  /** How many calls may fail in a row, and the pause after the first of them. */
  readonly attempts?: number;
  readonly delayMs?: number;
}

interface ChargedCall extends Remainder {
  readonly uncharged: Uncharged;
}

/** A backend, and the right to call it. */
interface Placement {
  readonly lease: BackendLease;
  readonly backend: Backend;
  readonly pass: Pass | undefined;
}

/** How one call went. `part` is absent if a pause cut it before its first token. */
type CallResult =
  | { readonly kind: 'answered'; readonly generation: Generation; readonly part?: SampledTurn }
  | { readonly kind: 'failed'; readonly error: RolloutError; readonly part?: SampledTurn }
  | { readonly kind: 'stopped'; readonly error: unknown; readonly part?: SampledTurn };

export class Sampler implements Disposable {
  readonly ledger: Ledger;
  /** How long its turns have waited for room in a KV cache. */
  cacheWaitMs = 0;
  readonly #options: SamplerOptions;
  #lease: BackendLease | undefined;
  /** The flushes of the caches that the last call knew of. */
  #flushes: number | undefined;
  #openingTokens: number | undefined;
  /** Whether the last call failed: the next one goes elsewhere. */
  #isBroken = false;

  constructor(options: SamplerOptions) {
    this.ledger = options.ledger;
    this.#options = options;
  }

  /** Continues the ledger's ids, which only `onPart` changes. Throws the error of the last attempt, `too-stale`, or the signal's reason. */
  async sample(turn: TurnRequest): Promise<SampledTurn> {
    const { attempts = 4, delayMs = 250, clock = systemClock } = this.#options;
    const { signal, onPart } = turn;
    const retrying = { attempts, delayMs, signal, clock, uncharged: this.#uncharged };
    let rest: Remainder = { ...turn, before: new Int32Array(0), retries: 0 };
    const keepsParts = onPart !== undefined && isDivisible(turn.sampling);
    for (;;) {
      signal.throwIfAborted();
      await this.#waitForPolicy(signal);
      checkStaleness(this.ledger, this.#options);
      const answer = await retry((failures) => this.#attempt(rest, failures > 0), retrying);
      const sampled = answer && (await endAtStop(answer, rest));
      if (!sampled || (sampled.finishReason === 'abort' && !keepsParts)) {
        rest.retries += 1;
        continue;
      }
      const parts = onPart ? splitByVersion(sampled) : [sampled];
      const last = sampled.finishReason === 'abort' ? undefined : parts.pop();
      for (const part of parts) await onPart?.(part);
      if (last) return last;
      rest = toRest(rest, sampled.tokenIds);
    }
  }

  /** Gives the backend back. */
  [Symbol.dispose](): void {
    this.#lease?.[Symbol.dispose]();
    this.#lease = undefined;
  }

  /** Place, call, report. Undefined if a pause cut the call before its first token. */
  async #attempt(rest: Remainder, hasFailed: boolean): Promise<SampledTurn | undefined> {
    const { clock = systemClock } = this.#options;
    const placement = await this.#place(rest.signal, hasFailed);
    using _ = placement.pass;
    const startedAt = clock.monotonic();
    let unchargedMs = 0;
    const uncharged: Uncharged = (wait) =>
      this.#uncharged(async () => {
        const waitedAt = clock.monotonic();
        try {
          return await wait();
        } finally {
          unchargedMs += clock.monotonic() - waitedAt;
        }
      });
    const call = placement.lease.startCall();
    const span = rest.span?.begin(
      toCallSpan({ ...placement.lease.entry.record, ...rest, sessionId: this.#options.sessionId, promptTokens: this.ledger.length }),
    );
    const result = await this.#call(placement, call, { ...rest, uncharged });
    if (result.part) span?.note(toCallAttributes(result.part));
    span?.end(result.kind === 'answered' ? undefined : errorTypeOf(result.error));
    this.#report(call, result, clock.monotonic() - startedAt - unchargedMs);
    this.#isBroken = result.kind === 'failed';
    if (result.kind === 'answered' || result.part) return result.part;
    rest.retries += 1;
    throw result.error;
  }

  /** Keeps the backend of the last turn if it can. It holds no pass while it waits, so a pause does not wait for it. */
  async #place(signal: AbortSignal, hasFailed: boolean): Promise<Placement> {
    const { gate } = this.#options;
    for (let reason: MoveReason | undefined = hasFailed || this.#isBroken ? 'failed' : undefined; ; ) {
      const lease = await this.#takeLease(reason ?? this.#findMoveReason(), signal);
      const room = lease.admit(this.#toCacheTurn(), signal);
      if (room) this.cacheWaitMs += await this.#uncharged(() => room);
      await this.#waitForPolicy(signal);
      const pass = gate?.enter();
      const isFlushed = this.#noteFlushes(pass);
      if (isFlushed) lease.noteFlush();
      // During the waits the backend may have left, and the gate may have closed again.
      const { backend } = lease;
      if (backend && !isFlushed && (pass || !gate)) return { lease, backend, pass };
      pass?.[Symbol.dispose]();
      reason = isFlushed ? 'flushed' : undefined;
    }
  }

  #toCacheTurn() {
    const { group, createdAtMs: rank = 0 } = this.#options;
    const tokens = this.ledger.length;
    this.#openingTokens ??= tokens;
    const shared = group === undefined ? undefined : { key: `${group} ${this.#openingTokens}`, tokens: this.#openingTokens };
    return { tokens, rank, group, shared };
  }

  #findMoveReason(): MoveReason | undefined {
    if (!this.#lease) return undefined;
    if (!this.#lease.backend) return 'failed';
    if (this.#lease.noteServer()) return 'flushed';
    return this.#options.pool.shouldMove(this.#lease) ? 'busy' : undefined;
  }

  async #takeLease(reason: MoveReason | undefined, signal: AbortSignal): Promise<BackendLease> {
    const { pool, rollout } = this.#options;
    const current = this.#lease;
    if (current && !reason) return current;
    const options = { signal, tokens: this.ledger.length };
    const next = await this.#uncharged(() =>
      current && reason ? pool.move(current, { ...options, reason }) : pool.acquire({ ...options, rollout }),
    );
    this.#lease = next;
    return next;
  }

  /** True once after the caches were flushed: then no backend is better for the rollout than another. */
  #noteFlushes(pass: Pass | undefined): boolean {
    const before = this.#flushes;
    this.#flushes = pass?.flushes ?? before;
    return before !== undefined && before !== this.#flushes;
  }

  /** One request. Never throws: how it went is a value, so that it is reported exactly once. */
  async #call({ lease, backend: given, pass }: Placement, call: BackendCall, rest: ChargedCall): Promise<CallResult> {
    const { sampling, maxTokens, stopTokenIds, signal, retries, chat, uncharged } = rest;
    const { sessionId, pool } = this.#options;
    const adapter = definedOf({ adapter: pass?.adapter });
    const { watch } = lease.entry;
    const stream = openStreamedPart(rest);
    const engine = () => toEngineFacts(lease.entry, sampling);
    try {
      const server = await watch?.start({ signal, uncharged });
      // The proof may have shown that it is another server, which is called over other connections.
      const backend = lease.backend ?? given;
      const first = backend.policyVersion;
      stream?.begin({ ...adapter, policyVersions: { first, last: first }, backend: backend.id, engine: engine(), retries });
      const generation = await backend.generate({
        promptJson: this.ledger.promptJson,
        promptTokens: this.ledger.length,
        sampling,
        maxTokens,
        stopTokenIds,
        sessionId,
        ...definedOf({ rank: lease.rank, knownExperts: this.ledger.knownExperts, chat, onTokens: stream?.onTokens }),
        requestId: `${sessionId}-${randomUUID()}`,
        signal,
        onProgress: (sampledTokens) => call.progress(sampledTokens),
        ...adapter,
        ...definedOf({ cut: pass?.cut, cacheSalt: pass?.cacheSalt, priority: pool.prioritizesLong ? this.ledger.turn : undefined }),
      });
      stream?.end();
      if (server !== undefined) await watch?.confirm(server, { signal, uncharged });
      const { finishReason, stoppedBy } = toEnd(generation, rest);
      if (finishReason === 'abort' && generation.tokenIds.length === 0) {
        if (pass?.cut.aborted) return { kind: 'answered', generation };
        const message = `${backend.id} aborted the generation before its first token`;
        return { kind: 'failed', error: new RolloutError('backend-failed', message, { details: { reason: 'aborted' } }) };
      }
      const policyVersions = { first, last: lease.backend?.policyVersion ?? first };
      const end = { finishReason, ...definedOf({ stoppedBy }) };
      const part = { policyVersions, ...generation, ...adapter, ...end, backend: backend.id, engine: engine(), retries };
      return { kind: 'answered', generation, part };
    } catch (error) {
      const part = definedOf({ part: stream?.part });
      if (!(error instanceof RolloutError) || signal.aborted) return { kind: 'stopped', error, ...part };
      return { kind: 'failed', error: stream?.refuse(error) ?? error, ...part };
    }
  }

  #report(call: BackendCall, result: CallResult, ms: number): void {
    switch (result.kind) {
      case 'answered':
        call.report({ kind: 'answered', promptTokens: this.ledger.length, generation: result.generation });
        if (!result.part) this.#options.refund?.(ms);
        break;
      case 'failed':
        call.report({ kind: 'failed', error: result.error });
        this.#options.refund?.(ms);
        break;
      case 'stopped':
        call.report({ kind: 'stopped' });
    }
  }

  async #waitForPolicy(signal: AbortSignal): Promise<void> {
    const { gate } = this.#options;
    if (gate && !gate.isOpen) await this.#uncharged(() => gate.opened({ signal }));
  }

  get #uncharged(): Uncharged {
    return this.#options.uncharged ?? ((wait) => wait());
  }
}
