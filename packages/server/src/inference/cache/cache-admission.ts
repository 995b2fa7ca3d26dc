// One KV cache as a worker accounts for it: the contexts of its rollouts, and what its calls show of the engine. Without pressure a turn costs
// one comparison; under pressure the rule decides which rollouts wait. It has no timer and no clock: callers say what happens, and when.

import { CacheLoad, type CacheRow, decideTurns } from './cache-rule.ts';

export type CacheAsk = Pick<CacheRow, 'id' | 'rank' | 'tokens' | 'shared'>;

/** How a call ended. */
export interface CacheCall {
  readonly id: string;
  /** The length of its context now; absent if nothing came back. */
  readonly tokens?: number | undefined;
  /** What the engine had of its prompt; absent if it does not say, or if nothing came back. */
  readonly cachedTokens?: number | undefined;
  /** Until the first token came, or the whole reply where that is not known; absent if nothing came back. */
  readonly firstTokenMs?: number | undefined;
}

export interface CacheView {
  readonly members: number;
  readonly memberTokens: number;
  readonly held: number;
  readonly usableTokens: number;
}

interface Account extends CacheRow {
  tokens: number;
  growth: number;
  phase: CacheRow['phase'];
  sinceMs: number;
  isMember: boolean;
  /** Of its context, what the engine should still have. */
  expectedTokens: number;
}

/** The weight of a tool in the average of all. */
const toolShare = 0.02;
/** A call shows the speed of the engine only if it had this much to compute. */
const leastComputed = 1000;
/** How much of the best speed seen remains with each call that shows one. */
const speedMemory = 0.99;
/** Of the tokens that members should find, the share that may be missing. More than that, and fewer contexts are kept. */
const missShare = 0.04;
/** The part of a surprise by which the usable capacity changes. */
const correction = 1 / 8;
/** It is never taken to be less than this part of what the engine reports. */
const leastUsable = 1 / 8;

export class CacheAdmission {
  readonly #rows = new Map<string, Account>();
  /** Members, and all that sample. */
  readonly #load = new CacheLoad();
  #held = 0;
  #capacity: number;
  #usable: number;
  /** Tokens of prompts that the engine computes in a millisecond; 0 until a call has shown it. */
  #speed = 0;
  /** How long a tool runs, on average; 0 until one has. */
  #toolMs = 0;

  /** Without a capacity nothing is ever held. */
  constructor(capacityTokens = Number.POSITIVE_INFINITY) {
    this.#capacity = capacityTokens;
    this.#usable = capacityTokens;
  }

  /** The engine reports another capacity. What is known of its use is kept in proportion. */
  resize(capacityTokens: number): void {
    if (capacityTokens === this.#capacity) return;
    this.#usable = Number.isFinite(this.#capacity) ? (this.#usable * capacityTokens) / this.#capacity : capacityTokens;
    this.#capacity = capacityTokens;
  }

  /** True if the turn may start now. Otherwise `next` names the rollout later, unless it leaves. */
  ask(ask: CacheAsk, nowMs: number): boolean {
    const row = this.#note(ask, nowMs);
    if (this.#held === 0 && (row.isMember ? this.#load.tokens <= this.#usable : this.#load.fits(row, this.#usable))) {
      this.#start(row, { isMember: true, nowMs });
      return true;
    }
    row.phase = 'held';
    row.sinceMs = nowMs;
    this.#held += 1;
    return this.next(nowMs, row.id).length > 0;
  }

  /** The held rollouts that may start now, or only the one that is named. Call it after each change, and now and then while any is held. */
  next(nowMs: number, only?: string): readonly string[] {
    if (this.#held === 0) return [];
    const limits = { usableTokens: this.#usable, horizonMs: this.#horizonMs, guestTokens: this.#guestTokens, nowMs };
    const { out, go } = decideTurns([...this.#rows.values()], limits);
    for (const id of out) this.#change(id, (row) => Object.assign(row, { isMember: false, expectedTokens: 0 }));
    const started = only === undefined ? go : go.filter(({ id }) => id === only);
    for (const { id, isMember } of started) {
      const row = this.#rows.get(id);
      this.#held -= 1;
      if (row) this.#start(row, { isMember, nowMs });
    }
    return started.map(({ id }) => id);
  }

  /** A call is over, however it ended. */
  endCall({ id, tokens: given, cachedTokens, firstTokenMs }: CacheCall, nowMs: number): void {
    const row = this.#rows.get(id);
    if (row?.phase !== 'sampling') return;
    const tokens = given ?? row.tokens;
    if (cachedTokens !== undefined) this.#correct(row.expectedTokens, cachedTokens);
    // An engine that does not say what it had is known to have had nothing of a new context.
    const had = cachedTokens ?? (row.growth === 0 ? 0 : row.tokens);
    if (firstTokenMs !== undefined && row.tokens - had >= leastComputed)
      this.#speed = Math.max(this.#speed * speedMemory, (row.tokens - had) / Math.max(1, firstTokenMs));
    this.#change(id, () => Object.assign(row, { tokens, phase: 'tool', sinceMs: nowMs, expectedTokens: row.isMember ? tokens : 0 }));
  }

  /** The rollout has ended, was moved or failed, in whatever phase it was. */
  leave(id: string): void {
    const row = this.#rows.get(id);
    if (row?.phase === 'held') this.#held -= 1;
    this.#change(id, () => this.#rows.delete(id));
  }

  /** The cache is empty, after a restart or with new weights: what members do not find there says nothing about its size. */
  flush(): void {
    for (const row of this.#rows.values()) row.expectedTokens = 0;
  }

  get view(): CacheView {
    const members = [...this.#rows.values()].filter(({ isMember }) => isMember);
    const memberTokens = members.reduce((sum, { tokens }) => sum + tokens, 0);
    return { members: members.length, memberTokens, held: this.#held, usableTokens: this.#usable };
  }

  get #horizonMs(): number {
    return this.#speed === 0 ? Number.POSITIVE_INFINITY : this.#capacity / this.#speed;
  }

  get #guestTokens(): number {
    return this.#speed === 0 || this.#toolMs === 0 ? Number.POSITIVE_INFINITY : this.#speed * this.#toolMs;
  }

  #note({ id, rank, tokens, shared }: CacheAsk, nowMs: number): Account {
    const known = this.#rows.get(id);
    if (known) {
      if (known.phase === 'held') this.#held -= 1;
      if (known.phase === 'tool') this.#toolMs += (nowMs - known.sinceMs - this.#toolMs) * (this.#toolMs === 0 ? 1 : toolShare);
      // Others may have taken its place in a long tool, also where none had to wait for it.
      if (nowMs - known.sinceMs > this.#horizonMs) known.expectedTokens = 0;
      this.#change(id, () => Object.assign(known, { growth: Math.max(0, tokens - known.tokens) || known.growth, tokens, phase: 'tool' }));
      return known;
    }
    const row: Account = { id, rank, tokens, growth: 0, phase: 'tool', sinceMs: nowMs, isMember: false, shared, expectedTokens: 0 };
    this.#rows.set(id, row);
    return row;
  }

  #start(row: Account, { isMember, nowMs }: { readonly isMember: boolean; readonly nowMs: number }): void {
    this.#change(row.id, () => Object.assign(row, { phase: 'sampling', sinceMs: nowMs, isMember }));
  }

  /** Keeps the sum in step with the rows. */
  #change(id: string, change: (row: Account) => unknown): void {
    const row = this.#rows.get(id);
    if (!row) return;
    if (isLoad(row)) this.#load.remove(row);
    change(row);
    if (this.#rows.has(id) && isLoad(row)) this.#load.add(row);
  }

  /** The capacity is what the engine reports, less what members are seen to lose: to others, to ended contexts, to a report that is wrong. */
  #correct(expectedTokens: number, cachedTokens: number): void {
    if (expectedTokens === 0 || !Number.isFinite(this.#capacity)) return;
    // The last block is not full and is never found.
    const missed = Math.max(0, 0.99 * expectedTokens - cachedTokens);
    const next = this.#usable + correction * (missShare * expectedTokens - missed);
    this.#usable = Math.min(this.#capacity, Math.max(leastUsable * this.#capacity, next));
  }
}

function isLoad({ isMember, phase }: CacheRow): boolean {
  return isMember || phase === 'sampling';
}
