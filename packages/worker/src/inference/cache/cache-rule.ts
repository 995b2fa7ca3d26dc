// Which rollouts keep their context in a KV cache, and which of those that ask for a turn may go. A pure function of rows: a worker calls it
// with its own, a store could with everyone's.
//
// A member's context is to stay in the cache between its turns. Members are never more than fit, so their turns find their prefix. The
// others wait for room, the oldest first. Waiting costs a rollout its time; computing a context again costs the time of all that sample.

/** A rollout on one cache. `held` asks for a turn and waits. */
export interface CacheRow {
  readonly id: string;
  /** As the store names it; absent if that is the `id`. */
  readonly rollout?: string | undefined;
  /** Smaller goes first and is asked to wait last: when the rollout, or its group, was started. */
  readonly rank: number;
  /** Among those of one rank, which are submitted together: when it, or its group, first asked here. */
  readonly order?: number | undefined;
  /** The length of its context. */
  readonly tokens: number;
  /** How many tokens its last turn added. */
  readonly growth: number;
  readonly phase: 'sampling' | 'tool' | 'held';
  /** When the phase started. */
  readonly sinceMs: number;
  readonly isMember: boolean;
  readonly group?: string | undefined;
  /** The opening that it shares with others, which is in the cache once. It has the same length in all rows with the key. */
  readonly shared?: { readonly key: string; readonly tokens: number } | undefined;
}

interface CacheLimits {
  /** How many tokens of contexts stay in the cache from turn to turn. */
  readonly usableTokens: number;
  /**
   * How long a context is worth its room while its rollout runs a tool: the time in which the engine computes a whole cache. If most contexts
   * return later than that, computing each again costs less than the turns that others could have had in its place.
   */
  readonly horizonMs: number;
  /** The longest context that an engine without work computes again: what it can while the members' tools run. */
  readonly guestTokens: number;
  readonly nowMs: number;
}

/** The rows that change. */
interface CacheDecision {
  /** No longer members: in a tool for longer than the horizon, or the youngest of more than fit. They wait when they ask. */
  readonly out: readonly string[];
  /** These sample now; a guest is not a member afterwards. */
  readonly go: readonly { readonly id: string; readonly isMember: boolean }[];
}

/** After this a rollout goes even if nothing fits, one at a time. Only an account that is wrong lets it come to that. */
export const longestHoldMs = 600_000;

export function decideTurns(rows: readonly CacheRow[], limits: CacheLimits): CacheDecision {
  const out = new Set(rows.filter((row) => row.isMember && isAsleep(row, limits)).map(({ id }) => id));
  const members = rows.filter(({ id, isMember }) => isMember && !out.has(id)).sort(compareRank);
  const kept = sumOf(members);
  for (let last = members.pop(); last && kept.tokens > limits.usableTokens; last = members.pop()) {
    // A context that is too large for the cache has it to itself, if there is any.
    if (members.length === 0 && limits.usableTokens > 0) break;
    kept.remove(last);
    out.add(last.id);
  }
  const inUse = sumOf(rows.filter(({ id, isMember, phase }) => (isMember && !out.has(id)) || phase === 'sampling'));
  return { out: [...out], go: chooseGo(rows, { inUse, out, limits }) };
}

/** In a tool that takes so long that its context is not worth its room. */
export function isAsleep({ phase, sinceMs }: CacheRow, { horizonMs, nowMs }: Pick<CacheLimits, 'horizonMs' | 'nowMs'>): boolean {
  return phase === 'tool' && nowMs - sinceMs > horizonMs;
}

interface Room {
  readonly inUse: CacheLoad;
  readonly out: ReadonlySet<string>;
  readonly limits: CacheLimits;
}

/**
 * Members first. The others in their order, those that have waited too long before all: one that does not fit is not overtaken by smaller
 * ones, or it could wait for ever.
 */
function chooseGo(rows: readonly CacheRow[], { inUse, out, limits }: Room): CacheDecision['go'] {
  const held = rows.filter(({ phase }) => phase === 'held').sort(compareRank);
  const isIn = ({ id, isMember }: CacheRow) => isMember && !out.has(id);
  const isLate = ({ sinceMs }: CacheRow) => limits.nowMs - sinceMs > longestHoldMs;
  const go = held.filter(isIn).map(({ id }) => ({ id, isMember: true }));
  let sampling = go.length + rows.filter(({ phase }) => phase === 'sampling').length;
  let hasGuest = rows.some(({ phase, isMember }) => phase === 'sampling' && !isMember);
  const others = held.filter((row) => !isIn(row));
  for (const row of [...others.filter(isLate), ...others.filter((one) => !isLate(one))]) {
    const isMember = inUse.fits(row, limits.usableTokens);
    const isGuest = sampling === 0 && row.tokens <= limits.guestTokens;
    if (!isMember && !isGuest && (hasGuest || !isLate(row))) break;
    hasGuest ||= !isMember;
    inUse.add(row);
    sampling += 1;
    go.push({ id: row.id, isMember });
  }
  return go;
}

/** Siblings follow each other, so that one group ends before the next. */
function compareRank(a: CacheRow, b: CacheRow): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  const [first = 0, second = 0] = [a.order, b.order];
  if (first !== second) return first - second;
  const [one, other] = a.group === b.group ? [a.id, b.id] : [a.group ?? a.id, b.group ?? b.id];
  return one < other ? -1 : 1;
}

type CacheContext = Pick<CacheRow, 'tokens' | 'growth' | 'shared'>;

/** The contexts of several rollouts together. What siblings share counts once. */
export class CacheLoad {
  tokens = 0;
  growth = 0;
  count = 0;
  readonly #sharing = new Map<string, number>();

  add({ tokens, growth, shared }: CacheContext): void {
    const sharing = (shared && this.#sharing.get(shared.key)) ?? 0;
    this.tokens += tokens - (shared && sharing > 0 ? shared.tokens : 0);
    this.growth += growth;
    this.count += 1;
    if (shared) this.#sharing.set(shared.key, sharing + 1);
  }

  remove({ tokens, growth, shared }: CacheContext): void {
    const sharing = (shared && this.#sharing.get(shared.key)) ?? 0;
    this.tokens -= tokens - (shared && sharing > 1 ? shared.tokens : 0);
    this.growth -= growth;
    this.count -= 1;
    if (!shared) return;
    if (sharing > 1) this.#sharing.set(shared.key, sharing - 1);
    else this.#sharing.delete(shared.key);
  }

  /** Whether it fits with all others, and still does after the next turn of each. Anything fits into an empty cache, if there is any. */
  fits({ tokens, growth, shared }: CacheContext, usableTokens: number): boolean {
    const own = tokens - (shared && this.#sharing.has(shared.key) ? shared.tokens : 0);
    return (this.count === 0 && usableTokens > 0) || this.tokens + this.growth + own + growth <= usableTokens;
  }
}

function sumOf(rows: readonly CacheRow[]): CacheLoad {
  const load = new CacheLoad();
  for (const row of rows) load.add(row);
  return load;
}
