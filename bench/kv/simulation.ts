// Agents with growing contexts on simulated engines, in virtual time and from a seed: each samples a turn, runs a tool, and asks for
// the next turn. A policy decides when a turn starts; the engine decides how long it takes.

import { makeRandom } from '@millrace/testkit';
import { type EngineShape, SimEngine } from './engine.ts';

export interface Workload {
  /** An agent whose session ends starts another one. */
  readonly agents: number;
  readonly startTokens: number;
  readonly observedTokens: number;
  readonly outputTokens: number;
  readonly turns: number;
  /** Whether the first session of each agent starts at a random turn, so that contexts of all sizes are there from the start. */
  readonly isSpread: boolean;
  /** The time of a tool: log-normal, cut at the longest. */
  readonly tool: { readonly medianS: number; readonly sigma: number; readonly longestS: number };
  /** Sessions that share their first tokens, as the siblings of a group do; 1 if none do. */
  readonly groupSize?: number;
  /** Sessions that are unlike the others, by their number. */
  readonly unlike?: (session: number) => { readonly startTokens?: number; readonly toolS?: number };
}

export interface SimSession {
  readonly id: number;
  readonly agent: number;
  readonly group: number;
  /** A policy may move it before a turn. */
  engine: number;
  readonly startedS: number;
  turn: number;
  tokens: number;
  /** The opening that it shares with the sessions of its group. */
  readonly shared?: { readonly key: string; readonly tokens: number };
}

/** Decides when a turn starts, and sees each moment of a session. */
export interface TurnPolicy {
  /** Calls `go` once, now or later. */
  ask(session: SimSession, go: () => void): void;
  endTurn?(session: SimSession, call: CallEnd): void;
  endSession?(session: SimSession): void;
}

export interface CallEnd {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly firstTokenS: number;
}

export interface SimWorld {
  readonly engines: readonly SimEngine[];
  now(): number;
  after(seconds: number, act: () => void): void;
}

export interface KvReport {
  readonly tokensPerS: number;
  readonly hitRate: number;
  /** As vLLM before 0.30 counts it. */
  readonly lookupHitRate: number;
  readonly firstTokenS: readonly number[];
  readonly holdS: readonly number[];
  readonly sessionS: readonly number[];
  /** From the start of a group's first session to the end of its last. */
  readonly groupS: readonly number[];
  readonly recomputedTokens: number;
  readonly preemptions: number;
  readonly busy: number;
}

export interface KvRun {
  readonly shape: EngineShape;
  readonly engines?: number;
  readonly workload: Workload;
  readonly policy: (world: SimWorld) => TurnPolicy;
  readonly seed: number;
  readonly seconds: number;
  /** What happens before this is not counted. */
  readonly warmupS?: number;
  /** Happens to the world at a time, such as a restart. */
  readonly incident?: { readonly atS: number; readonly act: (world: SimWorld) => void };
}

export function simulate(run: KvRun): KvReport {
  return new KvSimulation(run).run();
}

class KvSimulation implements SimWorld {
  readonly engines: readonly SimEngine[];
  readonly #run: KvRun;
  readonly #policy: TurnPolicy;
  readonly #events = new EventQueue();
  readonly #stepping = new Set<SimEngine>();
  readonly #firstTokenS: number[] = [];
  readonly #holdS: number[] = [];
  readonly #sessionS: number[] = [];
  readonly #groupS: number[] = [];
  readonly #groups = new Map<number, { readonly startedS: number; ended: number }>();
  #now = 0;
  #sessions = 0;
  #recomputed = 0;

  constructor(run: KvRun) {
    this.#run = run;
    this.engines = Array.from({ length: run.engines ?? 1 }, () => new SimEngine(run.shape));
    this.#policy = run.policy(this);
  }

  now(): number {
    return this.#now;
  }

  after(seconds: number, act: () => void): void {
    this.#events.push(this.#now + seconds, act);
  }

  run(): KvReport {
    const { workload, seed, seconds, warmupS = 0, incident } = this.#run;
    const random = makeRandom(seed);
    for (let agent = 0; agent < workload.agents; agent += 1) {
      const turn = workload.isSpread ? Math.floor(random() * workload.turns) : 0;
      this.after(0, () => this.#openSession(agent, turn));
    }
    if (incident) this.after(incident.atS, () => incident.act(this));
    const before: { counts?: SimEngine['counts'][] } = {};
    this.after(warmupS, () => {
      before.counts = this.engines.map(({ counts }) => ({ ...counts }));
      this.#recomputed = 0;
      for (const list of [this.#firstTokenS, this.#holdS, this.#sessionS, this.#groupS]) list.length = 0;
    });
    for (let next = this.#events.pop(); next && next.at <= seconds; next = this.#events.pop()) {
      this.#now = next.at;
      next.act();
    }
    return this.#report(before.counts ?? [], seconds - warmupS);
  }

  #report(before: readonly SimEngine['counts'][], seconds: number): KvReport {
    const sum = (key: keyof SimEngine['counts']) =>
      this.engines.reduce((total, { counts }, index) => total + counts[key] - (before[index]?.[key] ?? 0), 0);
    return {
      tokensPerS: sum('sampledTokens') / seconds,
      hitRate: sum('cachedTokens') / Math.max(1, sum('promptTokens')),
      lookupHitRate: sum('foundTokens') / Math.max(1, sum('lookedUpTokens')),
      firstTokenS: this.#firstTokenS,
      holdS: this.#holdS,
      sessionS: this.#sessionS,
      groupS: this.#groupS,
      recomputedTokens: this.#recomputed,
      preemptions: sum('preemptions'),
      busy: sum('busyS') / seconds / this.engines.length,
    };
  }

  /** A session has its own random numbers, so that every policy sees the same tools. */
  #openSession(agent: number, turn = 0): void {
    const { workload, seed } = this.#run;
    const { observedTokens, outputTokens, groupSize = 1, unlike } = workload;
    const id = this.#sessions++;
    const { startTokens = workload.startTokens } = unlike?.(id) ?? {};
    const group = Math.floor(id / groupSize);
    const tokens = startTokens + turn * (observedTokens + outputTokens);
    if (!this.#groups.has(group)) this.#groups.set(group, { startedS: this.#now, ended: 0 });
    const shared = groupSize > 1 ? { shared: { key: String(group), tokens: startTokens } } : {};
    const session = { id, agent, group, engine: agent % this.engines.length, startedS: this.#now, turn, tokens, ...shared };
    this.#turn(session, { agent, random: makeRandom(seed * 100_003 + id), knownTokens: 0 });
  }

  #turn(session: SimSession, state: { readonly agent: number; readonly random: () => number; knownTokens: number }): void {
    const { workload } = this.#run;
    const askedS = this.#now;
    this.#policy.ask(session, () => {
      this.#holdS.push(this.#now - askedS);
      const promptTokens = session.tokens;
      const [sentS, call] = [this.#now, { firstTokenS: 0 }];
      this.#submit(session, {
        onFirstToken: (now) => {
          call.firstTokenS = now - sentS;
          this.#firstTokenS.push(call.firstTokenS);
        },
        onEnd: ({ cachedTokens }) => {
          this.#recomputed += Math.max(0, state.knownTokens - cachedTokens);
          state.knownTokens = promptTokens + workload.outputTokens;
          session.turn += 1;
          session.tokens = state.knownTokens;
          this.#policy.endTurn?.(session, { promptTokens, cachedTokens, ...call });
          this.after(workload.unlike?.(session.id).toolS ?? sampleTool(workload, state.random), () => {
            session.tokens += workload.observedTokens;
            if (session.turn < workload.turns) return this.#turn(session, state);
            this.#sessionS.push(this.#now - session.startedS);
            this.#endInGroup(session);
            this.#policy.endSession?.(session);
            this.#openSession(state.agent);
          });
        },
      });
    });
  }

  #endInGroup({ group: key }: SimSession): void {
    const group = this.#groups.get(key);
    if (!group) return;
    group.ended += 1;
    if (group.ended === (this.#run.workload.groupSize ?? 1)) this.#groupS.push(this.#now - group.startedS);
  }

  #submit(
    session: SimSession,
    on: { onFirstToken(now: number): void; onEnd(end: { readonly now: number; readonly cachedTokens: number }): void },
  ): void {
    const { shape, workload } = this.#run;
    const engine = this.engines[session.engine];
    if (!engine) throw new Error(`there is no engine ${session.engine}`);
    const shared = (workload.groupSize ?? 1) > 1 ? Math.floor(workload.startTokens / shape.blockTokens) : 0;
    engine.submit({
      promptTokens: session.tokens,
      outputTokens: workload.outputTokens,
      // Blocks of a group's opening have the same name in all of its sessions.
      blockKey: (index) => (index < shared ? session.group * 2 : session.id * 2 + 1) * 2 ** 20 + index,
      ...on,
    });
    this.#step(engine);
  }

  #step(engine: SimEngine): void {
    if (engine.isIdle || this.#stepping.has(engine)) return;
    this.#stepping.add(engine);
    // In a step of its own, so that requests of the same moment are in one batch.
    this.after(0, () => {
      const seconds = engine.begin();
      this.after(seconds, () => {
        this.#stepping.delete(engine);
        engine.finish(this.#now);
        this.#step(engine);
      });
    });
  }
}

function sampleTool({ tool: { medianS, sigma, longestS } }: Workload, random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.min(longestS, medianS * Math.exp(sigma * normal));
}

/** A heap; events of the same time keep their order. */
class EventQueue {
  readonly #heap: { readonly at: number; readonly order: number; readonly act: () => void }[] = [];
  #order = 0;

  push(at: number, act: () => void): void {
    const heap = this.#heap;
    heap.push({ at, order: this.#order++, act });
    for (let child = heap.length - 1; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!this.#isBefore(child, parent)) return;
      this.#swap(child, parent);
      child = parent;
    }
  }

  pop(): { readonly at: number; readonly act: () => void } | undefined {
    const heap = this.#heap;
    if (heap.length <= 1) return heap.pop();
    this.#swap(0, heap.length - 1);
    const first = heap.pop();
    for (let parent = 0; ; ) {
      const left = 2 * parent + 1;
      const right = left + 1;
      let least = left < heap.length && this.#isBefore(left, parent) ? left : parent;
      if (right < heap.length && this.#isBefore(right, least)) least = right;
      if (least === parent) return first;
      this.#swap(parent, least);
      parent = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (!one || !other) return false;
    return one.at === other.at ? one.order < other.order : one.at < other.at;
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (!one || !other) return;
    this.#heap[a] = other;
    this.#heap[b] = one;
  }
}
