// The rules that are compared: none, a fixed number of sessions, ThunderAgent's, and the one that the service runs.

import { CacheAdmission } from '../../packages/server/src/inference/cache/cache-admission.ts';
import type { SimSession, SimWorld, TurnPolicy } from './simulation.ts';

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

/** The rule that the service runs, one account for each engine. `reported` changes the capacity that engines report. */
export function ours(reported: (tokens: number) => number = (tokens) => tokens): (world: SimWorld) => TurnPolicy {
  return (world) => {
    const caches = world.engines.map(({ capacityTokens }) => ({
      admission: new CacheAdmission(reported(capacityTokens)),
      waiting: new Map<string, () => void>(),
    }));
    const nowMs = () => world.now() * 1000;
    const wake = (cache: (typeof caches)[number]) => {
      for (const id of cache.admission.next(nowMs())) {
        const go = cache.waiting.get(id);
        cache.waiting.delete(id);
        go?.();
      }
    };
    const tick = () => {
      for (const cache of caches) wake(cache);
      world.after(1, tick);
    };
    tick();
    const cacheOf = ({ engine }: SimSession) => {
      const cache = caches[engine];
      if (!cache) throw new Error(`there is no engine ${engine}`);
      return cache;
    };
    return {
      ask: (session, go) => {
        const cache = cacheOf(session);
        const id = nameOf(session);
        const { shared, tokens, startedS: rank } = session;
        if (cache.admission.ask({ id, rank, tokens, ...(shared ? { shared } : {}) }, nowMs())) go();
        else cache.waiting.set(id, go);
        wake(cache);
      },
      endTurn: (session, { cachedTokens, firstTokenS }) => {
        const cache = cacheOf(session);
        cache.admission.endCall({ id: nameOf(session), tokens: session.tokens, cachedTokens, firstTokenMs: 1000 * firstTokenS }, nowMs());
        wake(cache);
      },
      endSession: (session) => {
        const cache = cacheOf(session);
        cache.admission.leave(nameOf(session));
        wake(cache);
      },
    };
  };
}

/** Names sort as numbers do. */
function nameOf({ id }: SimSession): string {
  return String(id).padStart(8, '0');
}
