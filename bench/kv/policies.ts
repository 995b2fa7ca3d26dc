// The rules that are compared: none, a fixed number of sessions, ThunderAgent's, and the one that the service runs.

import { CacheAdmission } from '../../packages/worker/src/inference/cache/cache-admission.ts';
import type { CallEnd, SimSession, SimWorld, TurnPolicy } from './simulation.ts';

/** Every session stays on its engine, and every turn starts at once. */
export function sticky(): TurnPolicy {
  return { ask: (_, go) => go() };
}

/** At most this many sessions at a time on each engine; the others have not begun. */
export function fixedCap(cap: number): (world: SimWorld) => TurnPolicy {
  return ({ engines }) => {
    const inside = new Set<number>();
    const used = engines.map(() => 0);
    const queues: (() => void)[][] = engines.map(() => []);
    return {
      ask: (session, go) => {
        const enter = () => {
          used[session.engine] = (used[session.engine] ?? 0) + 1;
          inside.add(session.id);
          go();
        };
        if (inside.has(session.id)) go();
        else if ((used[session.engine] ?? 0) < cap) enter();
        else queues[session.engine]?.push(enter);
      },
      endSession: ({ id, engine }) => {
        inside.delete(id);
        used[engine] = (used[engine] ?? 1) - 1;
        queues[engine]?.shift()?.();
      },
    };
  };
}

interface OursOptions {
  /** Processes that share each engine; an agent belongs to one of them. */
  readonly workers?: number;
  /** Changes the capacity that engines report. */
  readonly reported?: (tokens: number) => number;
  /** Whether the siblings of a group are as old as the first of them. */
  readonly ranksGroups?: boolean;
  /** Whether all sessions were submitted at the same time, with ids that do not show their order. */
  readonly isOneSubmission?: boolean;
}

/** How old the contexts of other workers are when a worker reads them. */
const readS = 5;

/** The rule that the service runs, one account for each worker and engine. */
export function ours(options: OursOptions = {}): (world: SimWorld) => TurnPolicy {
  return (world) => new Ours(world, options);
}

interface WorkerCache {
  readonly admission: CacheAdmission;
  readonly waiting: Map<string, () => void>;
}

class Ours implements TurnPolicy {
  readonly #world: SimWorld;
  readonly #ranksGroups: boolean;
  readonly #isOneSubmission: boolean;
  /** In the order in which they began. */
  readonly #sessions = new Set<SimSession>();
  /** By engine, then by worker. */
  readonly #caches: readonly (readonly WorkerCache[])[];

  constructor(world: SimWorld, { workers = 1, reported = (tokens) => tokens, ranksGroups = true, isOneSubmission = false }: OursOptions) {
    this.#world = world;
    this.#ranksGroups = ranksGroups;
    this.#isOneSubmission = isOneSubmission;
    this.#caches = world.engines.map(({ capacityTokens }) =>
      Array.from({ length: workers }, () => ({ admission: new CacheAdmission(reported(capacityTokens)), waiting: new Map() })),
    );
    this.#every(1, () => {
      for (const cache of this.#caches.flat()) this.#wake(cache);
    });
    if (workers > 1) this.#every(readS, () => this.#divide());
  }

  ask(session: SimSession, go: () => void): void {
    const cache = this.#cacheOf(session);
    this.#sessions.add(session);
    const { shared, tokens, startedS } = session;
    const rank = this.#isOneSubmission ? 0 : startedS;
    const group = this.#ranksGroups && shared ? { group: shared.key } : {};
    if (cache.admission.ask({ id: this.#nameOf(session), rank, tokens, ...group, ...(shared ? { shared } : {}) }, this.#nowMs)) go();
    else cache.waiting.set(this.#nameOf(session), go);
    this.#wake(cache);
  }

  endTurn(session: SimSession, { cachedTokens, firstTokenS }: CallEnd): void {
    const cache = this.#cacheOf(session);
    cache.admission.endCall(
      { id: this.#nameOf(session), tokens: session.tokens, cachedTokens, firstTokenMs: 1000 * firstTokenS },
      this.#nowMs,
    );
    this.#wake(cache);
  }

  endSession(session: SimSession): void {
    const cache = this.#cacheOf(session);
    this.#sessions.delete(session);
    cache.admission.leave(this.#nameOf(session));
    this.#wake(cache);
  }

  get #nowMs(): number {
    return this.#world.now() * 1000;
  }

  #every(seconds: number, act: () => void): void {
    const tick = () => {
      act();
      this.#world.after(seconds, tick);
    };
    tick();
  }

  /** What each worker reads from the store under pressure. */
  #divide(): void {
    for (const [engine, caches] of this.#caches.entries()) {
      const asleep = new Set(caches.flatMap(({ admission }) => admission.asleep(this.#nowMs)));
      const placed = [...this.#sessions].filter((session) => session.engine === engine && !asleep.has(this.#nameOf(session)));
      const all = placed.reduce((sum, { tokens }) => sum + tokens, 0);
      for (const cache of caches) {
        const { keptTokens } = cache.admission;
        let left = keptTokens;
        const oldest = placed.filter(({ tokens }) => {
          left -= tokens;
          return left >= 0;
        });
        cache.admission.divide(all > keptTokens ? new Set(oldest.map((one) => this.#nameOf(one))) : undefined);
        this.#wake(cache);
      }
    }
  }

  /** Names sort as numbers do, or in no order. */
  #nameOf({ id }: SimSession): string {
    return String(this.#isOneSubmission ? (id * 7919) % 100_003 : id).padStart(8, '0');
  }

  #cacheOf({ engine, agent }: SimSession): WorkerCache {
    const caches = this.#caches[engine] ?? [];
    // Agents go to engines in turn, and the agents of an engine to workers.
    const cache = caches[Math.floor(agent / this.#caches.length) % caches.length];
    if (!cache) throw new Error(`there is no engine ${engine}`);
    return cache;
  }

  #wake({ admission, waiting }: WorkerCache): void {
    for (const id of admission.next(this.#nowMs)) {
      const go = waiting.get(id);
      waiting.delete(id);
      go?.();
    }
  }
}
