// A simulation of backends with prefix caches, in virtual time and from a seed: groups of rollouts with a shared prompt, many
// turns and long tails, on servers of which one is slow, one joins late, and one fails and comes back.

import { type BackendId, backendId } from '@millrace/protocol';
import { makeRandom } from '@millrace/testkit';

export const groups = 96;
export const groupSize = 8;
const running = 256;
const backends = 6;
/** The tokens in a backend's cache, and the calls that it runs at the same time. */
const cacheTokens = 400_000;
const batch = 48;
/** Seconds for each token that is not in the cache, and for each token that an otherwise idle server samples. */
const prefillS = 1 / 8000;
const decodeS = 1 / 60;

export interface SimRollout {
  readonly id: number;
  readonly group: number;
  readonly promptTokens: number;
  readonly turns: readonly { readonly sampled: number; readonly observed: number; readonly toolS: number }[];
  turn: number;
  context: number;
  turnsHere: number;
  at: SimBackend | undefined;
}

export class SimBackend {
  readonly id: BackendId;
  readonly speed: number;
  isUp: boolean;
  readonly held = new Set<SimRollout>();
  readonly queue: (() => void)[] = [];
  active = 0;
  /** Increases when it fails, so that calls in flight are known to be lost. */
  life = 0;
  /** Prefixes by their group or rollout, the last used one at the end. */
  readonly #cache = new Map<string, number>();
  #cached = 0;

  constructor(index: number, options: { readonly speed: number; readonly isUp: boolean }) {
    this.id = backendId.parse(`b${index}`);
    this.speed = options.speed;
    this.isUp = options.isUp;
  }

  /** How many of the context's tokens are in the cache. Afterwards all of them are. */
  use({ id, group, promptTokens, context }: SimRollout): number {
    const hit = this.#touch(`group ${group}`, promptTokens) + this.#touch(`rollout ${id}`, context - promptTokens);
    for (const [key, tokens] of this.#cache) {
      if (this.#cached <= cacheTokens) break;
      this.#cache.delete(key);
      this.#cached -= tokens;
    }
    return hit;
  }

  fail(): void {
    this.isUp = false;
    this.life += 1;
    this.active = 0;
    this.queue.length = 0;
    this.#cache.clear();
    this.#cached = 0;
  }

  #touch(key: string, tokens: number): number {
    const had = this.#cache.get(key) ?? 0;
    this.#cache.delete(key);
    this.#cache.set(key, tokens);
    this.#cached += tokens - had;
    return Math.min(had, tokens);
  }
}

/** Returns the backend of the next turn. The rollout's current backend is `at`, and may be down. */
export type Router = (rollout: SimRollout, up: readonly SimBackend[]) => SimBackend;

export interface SimReport {
  readonly hitRate: number;
  readonly turnS: readonly number[];
  readonly makespanS: number;
  /** At the start of each turn, the most rollouts in flight on a backend divided by the average. */
  readonly imbalance: readonly number[];
  readonly moves: number;
}

export function simulate(openRouter: (random: () => number) => Router, seed: number): SimReport {
  return new Simulation(openRouter(makeRandom(seed + 1000)), seed).run();
}

class Simulation {
  readonly #events: { readonly at: number; readonly act: () => void }[] = [];
  readonly #servers = Array.from({ length: backends }, (_, i) => new SimBackend(i, { speed: i === 1 ? 0.5 : 1, isUp: i !== 2 }));
  readonly #waiting: SimRollout[];
  readonly #route: Router;
  readonly #turnS: number[] = [];
  readonly #imbalance: number[] = [];
  /** Rollouts that run a tool. */
  readonly #tools = new Set<SimRollout>();
  #now = 0;
  #moves = 0;
  #prompt = 0;
  #hit = 0;

  constructor(route: Router, seed: number) {
    this.#route = route;
    this.#waiting = makeRollouts(makeRandom(seed));
  }

  run(): SimReport {
    const [, , late, frail] = this.#servers;
    this.#after(60, () => late && Object.assign(late, { isUp: true }));
    this.#after(120, () => frail && this.#fail(frail));
    this.#after(240, () => frail && Object.assign(frail, { isUp: true }));
    for (const rollout of this.#waiting.splice(0, running)) this.#turn(rollout, this.#now);
    let last = 0;
    for (let next = this.#events.pop(); next; next = this.#events.pop()) {
      this.#now = next.at;
      next.act();
      if (this.#servers.some(({ held }) => held.size > 0)) last = this.#now;
    }
    return { hitRate: this.#hit / this.#prompt, turnS: this.#turnS, makespanS: last, imbalance: this.#imbalance, moves: this.#moves };
  }

  #turn(rollout: SimRollout, askedAt: number): void {
    this.#tools.delete(rollout);
    const up = this.#servers.filter(({ isUp }) => isUp);
    const server = this.#route(rollout, up);
    if (rollout.at !== server) {
      if (rollout.at) this.#moves += 1;
      rollout.at?.held.delete(rollout);
      server.held.add(rollout);
      Object.assign(rollout, { at: server, turnsHere: 0 });
    }
    const counts = up.map(({ held }) => held.size);
    this.#imbalance.push((Math.max(...counts) * up.length) / counts.reduce((sum, n) => sum + n, 0));
    const start = () => this.#call(rollout, server, askedAt);
    if (server.active < batch) start();
    else server.queue.push(start);
  }

  /** A decoding step takes longer if more calls share it. */
  #call(rollout: SimRollout, server: SimBackend, askedAt: number): void {
    const step = rollout.turns[rollout.turn];
    if (!step) throw new Error(`rollout ${rollout.id} has no turn ${rollout.turn}`);
    const { life } = server;
    server.active += 1;
    const hit = server.use(rollout);
    const callS = ((rollout.context - hit) * prefillS + step.sampled * decodeS * (1 + server.active / 32)) / server.speed;
    this.#after(callS, () => {
      if (server.life !== life) return;
      this.#prompt += rollout.context;
      this.#hit += hit;
      this.#turnS.push(this.#now - askedAt);
      server.active -= 1;
      server.queue.shift()?.();
      rollout.context += step.sampled + step.observed;
      rollout.turn += 1;
      rollout.turnsHere += 1;
      if (rollout.turn >= rollout.turns.length) return this.#end(rollout, server);
      this.#tools.add(rollout);
      this.#after(step.toolS, () => this.#turn(rollout, this.#now));
    });
  }

  #end(rollout: SimRollout, server: SimBackend): void {
    (rollout.at ?? server).held.delete(rollout);
    const next = this.#waiting.shift();
    if (next) this.#turn(next, this.#now);
  }

  /** Its calls in flight are repeated elsewhere; a rollout that runs a tool notices at its next turn. */
  #fail(server: SimBackend): void {
    const lost = [...server.held].filter((rollout) => !this.#tools.has(rollout));
    server.fail();
    for (const rollout of lost) this.#turn(rollout, this.#now);
  }

  /** Sorted with the next event last; events at the same time keep their order. */
  #after(seconds: number, act: () => void): void {
    const at = this.#now + seconds;
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.at ?? 0) > at) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, { at, act });
  }
}

function makeRollouts(random: () => number): SimRollout[] {
  const spread = (median: number, sigma: number) =>
    median * Math.exp(sigma * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
  return Array.from({ length: groups }, () => Math.round(spread(3000, 0.5))).flatMap((promptTokens, group) =>
    Array.from({ length: groupSize }, (_, member) => ({
      id: group * groupSize + member,
      group,
      promptTokens,
      turns: Array.from({ length: Math.min(60, 1 + Math.round(spread(8, 0.8))) }, () => ({
        sampled: Math.round(spread(200, 0.6)),
        observed: Math.round(spread(400, 0.8)),
        toolS: spread(1.5, 1),
      })),
      turn: 0,
      context: promptTokens,
      turnsHere: 0,
      at: undefined,
    })),
  );
}
