// A rollout's lease on a backend, from its first turn to its last or until it moves, and the calls made under it. Each call
// reports its end once; the lease, the traffic counts and the health monitor all learn of it there.

import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '@millrace/base/clock';
import type { Backend, BackendRecord, Generation } from '@millrace/engines';
import type { BackendId, RolloutError } from '@millrace/protocol';
import type { PlacedRollout } from '@millrace/store';
import type { CacheAsk, CacheCall } from '../cache/cache-admission.ts';
import type { CacheGate } from '../cache/cache-gate.ts';
import type { CacheGates } from '../cache/cache-gates.ts';
import type { IdentityWatch } from '../identity/identity-watch.ts';
import type { CallInFlight, CallProgress } from './call-progress.ts';
import { type HealthMonitor, judgeFailure, type Outcome } from './health.ts';
import type { Traffic } from './traffic.ts';

/** A backend in the pool, shared by its leases. */
export interface PoolEntry {
  readonly id: BackendId;
  record: BackendRecord;
  backend: Backend;
  /** Whether the server is still the one that the record describes; absent where it is not watched. */
  readonly watch?: IdentityWatch;
  /** Leases of this process. */
  leases: number;
  /** The calls of this process in flight. */
  readonly progress: CallProgress;
  /** Leases of this process on each data-parallel rank. */
  readonly ranks: number[];
  hasLeft: boolean;
}

interface LeaseOptions {
  readonly entry: PoolEntry;
  readonly rollout?: PlacedRollout | undefined;
  /** Backends that the rollout left because they were too busy. */
  readonly left?: readonly BackendId[];
}

interface LeaseDeps {
  readonly clock: Clock;
  readonly traffic: Traffic;
  readonly health: HealthMonitor | undefined;
  /** Where turns wait for room in a KV cache; absent if they do not. */
  readonly caches?: CacheGates | undefined;
  onEnd(lease: BackendLease): void;
}

/** Dispose it to give the backend back; disposing twice has no further effect. */
export class BackendLease implements Disposable {
  readonly entry: PoolEntry;
  readonly rollout: PlacedRollout | undefined;
  readonly left: readonly BackendId[];
  /** Answered calls since the rollout came here or last asked for a better backend. */
  turns = 0;
  /** How the last call ended, and how many in a row found the backend busy. */
  last: { readonly outcome: Outcome; readonly retryAfterMs?: number } = { outcome: 'answered' };
  busyCalls = 0;
  readonly #deps: LeaseDeps;
  readonly #rank: number | undefined;
  readonly #cache: CacheGate | undefined;
  /** Its name in the account of the cache: a rollout may have two leases for a moment. */
  readonly #cacheId = randomUUID();
  /** The context that its last answered call left in the cache of the server. */
  #computedTokens = 0;
  #server: number | undefined;
  #isOpen = true;

  constructor({ entry, rollout, left = [] }: LeaseOptions, deps: LeaseDeps) {
    this.entry = entry;
    this.rollout = rollout;
    this.left = left;
    this.#deps = deps;
    this.#rank = chooseRank(entry, rollout?.id ?? '');
    if (this.#rank !== undefined) entry.ranks[this.#rank] = (entry.ranks[this.#rank] ?? 0) + 1;
    this.#cache = deps.caches?.find(entry.record, this.#rank);
    this.#server = entry.watch?.servers;
    entry.leases += 1;
  }

  /** The data-parallel rank of the server that all calls under this lease go to; undefined if it has only one. */
  get rank(): number | undefined {
    return this.#rank !== undefined && this.#rank < (this.entry.record.probe?.ranks ?? 1) ? this.#rank : undefined;
  }

  get id(): BackendId {
    return this.entry.id;
  }

  /** With the current policy version of its record; undefined once the backend has left the pool or is broken. */
  get backend(): Backend | undefined {
    const { hasLeft, record, backend } = this.entry;
    return hasLeft || record.health?.brokenAtMs !== undefined ? undefined : backend;
  }

  /** True once after another server has come to the address: the rollout's prefix is not in its cache. */
  noteServer(): boolean {
    const before = this.#server;
    this.#server = this.entry.watch?.servers;
    if (before !== this.#server) this.noteFlush();
    return before !== this.#server;
  }

  /** The cache of its backend is empty. */
  noteFlush(): void {
    this.#computedTokens = 0;
    this.#cache?.flush();
  }

  /** Waits for room in the KV cache of its backend, and resolves with how long it did; undefined if the turn may start at once. */
  admit(turn: Omit<CacheAsk, 'id' | 'rollout'>, signal: AbortSignal): Promise<number> | undefined {
    const room = this.#cache?.enter({ ...turn, id: this.#cacheId, rollout: this.rollout?.id }, signal);
    return room && this.#timeWait(room);
  }

  async #timeWait(room: Promise<void>): Promise<number> {
    const { clock, traffic } = this.#deps;
    const startedAt = clock.monotonic();
    let ms = 0;
    try {
      await room;
    } finally {
      ms = clock.monotonic() - startedAt;
      traffic.countCacheWait(this.id, ms);
    }
    return ms;
  }

  noteProgress(sampledTokens: number): void {
    this.#cache?.grow(this.#cacheId, sampledTokens);
  }

  /** The room stays the rollout's, for its next turn. Returns what was in the cache by the account, and what was there once and was not found. */
  noteTurn(call: Omit<CacheCall, 'id'>): { readonly expectedTokens: number; readonly recomputedTokens: number } {
    const { tokens, cachedTokens } = call;
    const expectedTokens = this.#cache?.endCall({ ...call, id: this.#cacheId }) ?? 0;
    if (cachedTokens === undefined) return { expectedTokens: 0, recomputedTokens: 0 };
    const recomputedTokens = Math.max(0, this.#computedTokens - cachedTokens);
    this.#computedTokens = tokens ?? this.#computedTokens;
    return { expectedTokens, recomputedTokens };
  }

  /** How a call under this lease ended. */
  noteEnd(outcome: Outcome, retryAfterMs?: unknown): void {
    if (outcome === 'answered') this.turns += 1;
    this.last = { outcome, ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}) };
    this.busyCalls = outcome === 'busy' ? this.busyCalls + 1 : 0;
  }

  startCall(): BackendCall {
    return new BackendCall(this, this.#deps);
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.entry.leases -= 1;
    this.#cache?.leave(this.#cacheId);
    if (this.#rank !== undefined) this.entry.ranks[this.#rank] = (this.entry.ranks[this.#rank] ?? 1) - 1;
    this.#deps.onEnd(this);
  }
}

/** The rank with the fewest leases. Among equals the rollout's id decides, so that many workers do not all start with the first rank. */
function chooseRank({ record, ranks: leases }: PoolEntry, rolloutId: string): number | undefined {
  const count = record.probe?.ranks ?? 1;
  if (count < 2) return undefined;
  const first = createHash('sha256').update(rolloutId).digest().readUInt32LE() % count;
  const ranks = Array.from({ length: count }, (_, i) => (first + i) % count);
  return ranks.reduce((best, rank) => ((leases[rank] ?? 0) < (leases[best] ?? 0) ? rank : best), first);
}

/** How a call ended. A call that its own rollout stopped says nothing about the backend. */
type CallReport =
  | { readonly kind: 'answered'; readonly promptTokens: number; readonly generation: Generation }
  | { readonly kind: 'failed'; readonly error: RolloutError }
  | { readonly kind: 'stopped' };

/** A call in flight. It counts on its backend until its report; only the first report has an effect. */
export class BackendCall {
  readonly #lease: BackendLease;
  readonly #deps: LeaseDeps;
  readonly #running: CallInFlight;
  #counted = 0;
  #firstTokenMs: number | undefined;
  #isOpen = true;

  constructor(lease: BackendLease, deps: LeaseDeps) {
    this.#lease = lease;
    this.#deps = deps;
    this.#running = lease.entry.progress.start();
    if (lease.last.outcome !== 'answered') deps.traffic.countRetry(lease.id);
  }

  /** How many tokens have arrived so far. */
  progress(sampledTokens: number): void {
    if (!this.#isOpen || sampledTokens <= this.#counted) return;
    this.#firstTokenMs ??= this.#deps.clock.monotonic() - this.#running.startedAt;
    this.#deps.traffic.countTokens(this.#lease.id, sampledTokens - this.#counted);
    this.#lease.entry.progress.addTokens(this.#running, sampledTokens - this.#counted);
    this.#lease.noteProgress(sampledTokens);
    this.#counted = sampledTokens;
  }

  report(report: CallReport): void {
    if (!this.#isOpen) return;
    const { clock, traffic, health } = this.#deps;
    const { id, entry } = this.#lease;
    if (report.kind === 'answered') {
      const { promptTokens, generation } = report;
      this.progress(generation.tokenIds.length);
      const tokens = promptTokens + generation.tokenIds.length;
      // A call that was cut before its first token may have computed nothing.
      const isEmpty = generation.tokenIds.length === 0;
      const found = this.#lease.noteTurn(
        isEmpty ? {} : { tokens, cachedTokens: generation.cachedTokens, firstTokenMs: this.#firstTokenMs },
      );
      traffic.countAnswer(id, { ...report, ...found, ms: clock.monotonic() - this.#running.startedAt });
    } else {
      this.#lease.noteTurn({});
      if (report.kind === 'failed') traffic.countError(id, report.error);
    }
    this.#isOpen = false;
    entry.progress.end(this.#running);
    if (report.kind === 'stopped') return;
    const error = report.kind === 'failed' ? report.error : undefined;
    const outcome = error ? judgeFailure(error) : 'answered';
    this.#lease.noteEnd(outcome, error?.details?.retry_after_ms);
    if (outcome !== 'answered') entry.watch?.doubt();
    health?.report(id, outcome, error);
  }
}
