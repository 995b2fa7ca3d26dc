// One KV cache as a worker accounts for it: the contexts of its rollouts, and what its calls show of the engine. Without pressure a turn costs
// one comparison; under pressure the rule decides which rollouts wait. It has no timer and no clock: callers say what happens, and when.

import { CacheLoad, type CacheRow, decideTurns, isAsleep, longestHoldMs } from './cache-rule.ts';

export type CacheAsk = Pick<CacheRow, 'id' | 'rollout' | 'rank' | 'tokens' | 'group' | 'shared'>;

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
  /** Of all its rollouts, whatever they do. */
  readonly contextTokens: number;
}

interface Account extends CacheRow {
  tokens: number;
  growth: number;
  phase: CacheRow['phase'];
  sinceMs: number;
  isMember: boolean;
  /** The length of its context when it last asked for a turn. */
  askedTokens: number;
  /** Of its context, what the engine should still have. */
  expectedTokens: number;
  /** Of the rollouts of all workers, it is one of the oldest, which fit together. */
  isOldest: boolean;
}

/** The rank of the group's first rollout here, while it has any. */
interface GroupRank {
  readonly rank: number;
  readonly order: number;
  rows: number;
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
const leastPart = 1 / 8;
/** The weight of a call in the average of what members find, and the least of it with which holding is worth its waits. */
const hitShare = 0.05;
const leastHits = 0.5;

export class CacheAdmission {
  readonly #rows = new Map<string, Account>();
  readonly #groups = new Map<string, GroupRank>();
  #asked = 0;
  /** Members, and all that sample. */
  readonly #load = new CacheLoad();
  #held = 0;
  #capacity: number;
  /** The part of it that contexts keep from turn to turn. */
  #part = 1;
  /** Whether other workers use the cache too. Then the contexts of the oldest are this worker's part of it, and what those left that have gone. */
  #isDivided = false;
  readonly #oldest = new CacheLoad();
  #vacantTokens = 0;
  /** The share of their contexts that members found, of late. */
  #hits = 1;
  /** Until then the engine is used as without admission. */
  #offUntilMs = 0;
  /** Tokens of prompts that the engine computes in a millisecond; 0 until a call has shown it. */
  #speed = 0;
  /** How long a tool runs, on average; 0 until one has. */
  #toolMs = 0;

  /** Without a capacity nothing is ever held. */
  constructor(capacityTokens = Number.POSITIVE_INFINITY) {
    this.#capacity = capacityTokens;
  }

  /** The engine reports another capacity. What is known of its use is kept in proportion. */
  resize(capacityTokens: number): void {
    this.#capacity = capacityTokens;
  }

  /** How much the rollouts of all workers may use together. */
  get keptTokens(): number {
    return this.#capacity * this.#part;
  }

  /** Takes the oldest rollouts of all workers that fit together; undefined if there is room for all, or no other worker. */
  divide(oldest: ReadonlySet<string> | undefined): void {
    this.#isDivided = oldest !== undefined;
    this.#vacantTokens = 0;
    for (const { id, rollout = id } of this.#rows.values())
      this.#change(id, (row) => Object.assign(row, { isOldest: oldest?.has(rollout) ?? false }));
  }

  /** True if the turn may start now. Otherwise `next` names the rollout later, unless it leaves. */
  ask(ask: CacheAsk, nowMs: number): boolean {
    const row = this.#note(ask, nowMs);
    const usable = this.#usableAt(nowMs);
    const fits = row.isMember ? this.#load.tokens <= usable || (usable > 0 && this.#load.count === 1) : this.#load.fits(row, usable);
    const mayStart = fits && (row.isMember || this.#held === 0);
    if (mayStart) this.#start(row, { isMember: true, nowMs });
    else {
      Object.assign(row, { phase: 'held', sinceMs: nowMs });
      this.#held += 1;
    }
    return mayStart;
  }

  /** The held rollouts that may start now. Call it after each change, and now and then while any is held. It looks at all rollouts. */
  next(nowMs: number): readonly string[] {
    if (this.#held === 0) return [];
    const limits = { usableTokens: this.#usableAt(nowMs), horizonMs: this.#horizonMs, guestTokens: this.#guestTokens, nowMs };
    const { out, go } = decideTurns([...this.#rows.values()], limits);
    for (const id of out) this.#change(id, (row) => Object.assign(row, { isMember: false, expectedTokens: 0 }));
    for (const { id, isMember } of go) {
      const row = this.#rows.get(id);
      this.#held -= 1;
      if (row) this.#start(row, { isMember, nowMs });
    }
    return go.map(({ id }) => id);
  }

  /** Tokens that have arrived during a call. */
  grow(id: string, sampledTokens: number): void {
    this.#change(id, (row) => {
      if (row.phase === 'sampling') row.tokens = row.askedTokens + sampledTokens;
    });
  }

  /** A call is over, however it ended. Returns how much of its prompt the engine was expected to have. */
  endCall({ id, tokens: given, cachedTokens, firstTokenMs }: CacheCall, nowMs: number): number {
    const row = this.#rows.get(id);
    if (row?.phase !== 'sampling') return 0;
    const { askedTokens, expectedTokens: expected, growth, isMember } = row;
    const tokens = given ?? askedTokens;
    if (cachedTokens !== undefined) this.#correct(expected, { cachedTokens, nowMs });
    // An engine that does not say what it had is known to have had nothing of a new context.
    const had = cachedTokens ?? (growth === 0 ? 0 : askedTokens);
    if (firstTokenMs !== undefined && askedTokens - had >= leastComputed)
      this.#speed = Math.max(this.#speed * speedMemory, (askedTokens - had) / Math.max(1, firstTokenMs));
    // A call of which nothing came back may have computed nothing.
    const expectedTokens = !isMember ? 0 : given === undefined ? expected : given;
    this.#change(id, () => Object.assign(row, { tokens, phase: 'tool', sinceMs: nowMs, expectedTokens }));
    return expected;
  }

  /** The rollout has ended, was moved or failed, in whatever phase it was. */
  leave(id: string): void {
    const row = this.#rows.get(id);
    if (!row) return;
    if (row.phase === 'held') this.#held -= 1;
    if (row.isOldest) this.#vacantTokens += row.tokens + row.growth;
    this.#change(id, () => this.#rows.delete(id));
    const siblings = row.group === undefined ? undefined : this.#groups.get(row.group);
    if (row.group === undefined || !siblings) return;
    siblings.rows -= 1;
    if (siblings.rows === 0) this.#groups.delete(row.group);
  }

  /** The rollouts whose tool has run for longer than their context is worth its room. */
  asleep(nowMs: number): readonly string[] {
    return [...this.#rows.values()]
      .filter((row) => isAsleep(row, { horizonMs: this.#horizonMs, nowMs }))
      .map(({ id, rollout = id }) => rollout);
  }

  /** The cache is empty, after a restart or with new weights: what members do not find there says nothing about its size. */
  flush(): void {
    for (const row of this.#rows.values()) row.expectedTokens = 0;
  }

  get view(): CacheView {
    const rows = [...this.#rows.values()];
    const members = rows.filter(({ isMember }) => isMember);
    return {
      members: members.length,
      memberTokens: sumTokens(members),
      held: this.#held,
      usableTokens: this.#usable,
      contextTokens: sumTokens(rows),
    };
  }

  #usableAt(nowMs: number): number {
    return nowMs < this.#offUntilMs ? Number.POSITIVE_INFINITY : this.#usable;
  }

  get #usable(): number {
    return this.#isDivided ? this.#oldest.tokens + this.#oldest.growth + this.#vacantTokens : this.keptTokens;
  }

  /** Of the whole cache, which all workers fill. No tool keeps its room for longer than a rollout may wait for it. */
  get #horizonMs(): number {
    return this.#speed === 0 ? longestHoldMs : Math.min(longestHoldMs, this.#capacity / this.#speed);
  }

  /** A worker that has a part of the cache has that part of the time in which the engine has no work. */
  get #guestTokens(): number {
    if (this.#usable === 0) return 0;
    const share = this.#isDivided ? Math.min(1, this.#usable / this.keptTokens) : 1;
    return this.#speed === 0 || this.#toolMs === 0 ? Number.POSITIVE_INFINITY : share * this.#speed * this.#toolMs;
  }

  #note({ id, rollout, rank, tokens, group, shared: opening }: CacheAsk, nowMs: number): Account {
    // A history that was rewritten may be shorter than its opening was.
    const shared = opening && opening.tokens <= tokens ? opening : undefined;
    const known = this.#rows.get(id);
    if (known) {
      if (known.phase === 'held') this.#held -= 1;
      // After a call that failed or was cut, no tool ran.
      if (known.phase === 'tool' && tokens > known.tokens)
        this.#toolMs += (nowMs - known.sinceMs - this.#toolMs) * (this.#toolMs === 0 ? 1 : toolShare);
      // Others may have taken its place in a long tool, also where none had to wait for it.
      if (nowMs - known.sinceMs > this.#horizonMs) known.expectedTokens = 0;
      const growth = Math.max(0, tokens - known.askedTokens) || known.growth;
      this.#change(id, () => Object.assign(known, { growth, tokens, askedTokens: tokens, shared, phase: 'tool' }));
      return known;
    }
    const start = { growth: 0, phase: 'tool', sinceMs: nowMs, isMember: false, expectedTokens: 0, isOldest: false } as const;
    const row: Account = { id, rollout, ...this.#rankOf(group, rank), tokens, askedTokens: tokens, group, shared, ...start };
    this.#rows.set(id, row);
    return row;
  }

  /** A sibling that comes later, in the place of one that failed, is as old as its group. */
  #rankOf(group: string | undefined, rank: number): { readonly rank: number; readonly order: number } {
    const order = this.#asked++;
    if (group === undefined) return { rank, order };
    const siblings = this.#groups.get(group) ?? { rank, order, rows: 0 };
    siblings.rows += 1;
    this.#groups.set(group, siblings);
    return { rank: Math.min(rank, siblings.rank), order: siblings.order };
  }

  #start(row: Account, { isMember, nowMs }: { readonly isMember: boolean; readonly nowMs: number }): void {
    this.#change(row.id, () => Object.assign(row, { phase: 'sampling', sinceMs: nowMs, isMember }));
  }

  /** Keeps the sums in step with the rows. */
  #change(id: string, change: (row: Account) => unknown): void {
    const row = this.#rows.get(id);
    if (!row) return;
    if (isLoad(row)) this.#load.remove(row);
    if (row.isOldest) this.#oldest.remove(row);
    change(row);
    if (!this.#rows.has(id)) return;
    if (isLoad(row)) this.#load.add(row);
    if (row.isOldest) this.#oldest.add(row);
  }

  /** The capacity is what the engine reports, less what members are seen to lose: to others, to ended contexts, to a report that is wrong. */
  #correct(expectedTokens: number, { cachedTokens, nowMs }: { readonly cachedTokens: number; readonly nowMs: number }): void {
    if (expectedTokens === 0 || !Number.isFinite(this.#capacity) || nowMs < this.#offUntilMs) return;
    // The last block is not full and is never found.
    const missed = Math.max(0, 0.99 * expectedTokens - cachedTokens);
    // A worker sees as much less of what is lost as its part of the cache is smaller.
    const seen = this.#isDivided ? Math.max(expectedTokens, Math.min(this.#usable, this.#capacity)) : this.#capacity;
    const change = (correction * (missShare * expectedTokens - missed)) / seen;
    this.#part = Math.min(1, Math.max(leastPart, this.#part + change));
    this.#hits += hitShare * (1 - missed / expectedTokens - this.#hits);
    // Even an eighth of it does not stay: the engine keeps no prefixes, or others fill it. Waiting gains nothing.
    if (this.#part > leastPart || this.#hits >= leastHits) return;
    this.#offUntilMs = nowMs + longestHoldMs;
    this.#part = 1;
    this.#hits = 1;
  }
}

function isLoad({ isMember, phase }: CacheRow): boolean {
  return isMember || phase === 'sampling';
}

function sumTokens(rows: readonly CacheRow[]): number {
  return rows.reduce((sum, { tokens }) => sum + tokens, 0);
}
