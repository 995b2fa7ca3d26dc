// A machine without sandboxes and backends, for the simulation of many: it knows only the addresses of servers, as a worker that joined, and
// makes the calls of one worker at the same pace: it renews its lease, waits for events, writes its turns, ends rollouts and claims others.

import { setTimeout as pause } from 'node:timers/promises';
import { type WorkerId, workerId } from '@millrace/protocol';
import { makeReport, makeResult, makeTrajectory } from '@millrace/testkit';
import { pauseAfter, systemClock } from '../../packages/base/src/clock.ts';
import { silentLog } from '../../packages/base/src/log.ts';
import type { Claim } from '../../packages/store/src/claim.ts';
import { EventTail, workerEvents } from '../../packages/store/src/event-tail.ts';
import { openRemoteStore } from '../../packages/store/src/remote/remote-store.ts';
import type { WorkerStore } from '../../packages/store/src/worker-store.ts';
import { flushPause } from '../../packages/worker/src/pipeline/turn-reporter.ts';
import { loadsPause, toRenewPause } from '../../packages/worker/src/pipeline/worker-report.ts';

/** The life of a rollout. Every machine holds `inFlight` of them all the time. */
export interface SimulatedLoad {
  readonly inFlight: number;
  readonly turns: number;
  readonly turnMs: number;
  readonly leaseMs: number;
}

/** The calls that are timed. */
export const timedCalls = ['renew', 'loads', 'claim', 'move', 'end', 'turns'] as const;
export type TimedCall = (typeof timedCalls)[number];

/** Milliseconds of each call, and how many leases ended. */
export class CallTimes {
  readonly ms: Record<TimedCall, number[]> = { renew: [], loads: [], claim: [], move: [], end: [], turns: [] };
  turnsWritten = 0;
  leasesEnded = 0;
  failed = 0;

  async time<T>(call: TimedCall, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const value = await work();
    this.ms[call].push(performance.now() - startedAt);
    return value;
  }
}

/** As a worker does. */
const tailGapMs = 20;
const namesMs = 5_000;
const rules = { maxLosses: 10, retryDelayMs: 1_000 };

export class SimulatedMachine implements AsyncDisposable {
  readonly #store: WorkerStore;
  readonly #load: SimulatedLoad;
  readonly #name: string;
  readonly #times: () => CallTimes;
  #stop = new AbortController();
  readonly #closing = new AbortController();
  #renewing = Promise.resolve();
  #loops: Promise<void>[] = [];
  readonly #held = new Map<string, Claim>();
  #claiming = Promise.resolve();
  #id: WorkerId;
  #lives = 0;
  #flushedAt = 0;
  #loadsAt = 0;
  #namedAt = Number.NEGATIVE_INFINITY;

  private constructor(
    store: WorkerStore,
    name: string,
    { load, times }: { readonly load: SimulatedLoad; readonly times: () => CallTimes },
  ) {
    this.#store = store;
    this.#name = name;
    this.#load = load;
    this.#times = times;
    this.#id = this.#nextId();
  }

  /** Registers it and claims all that it holds, which are in init then. From then on it renews its lease, as long as it is open. */
  static async open(
    servers: readonly string[],
    name: string,
    options: { readonly load: SimulatedLoad; readonly times: () => CallTimes },
  ): Promise<SimulatedMachine> {
    const machine = new SimulatedMachine(openRemoteStore({ servers, log: silentLog }), name, options);
    await machine.#register();
    machine.#renewing = machine.#repeat(
      () => machine.#renew(),
      (tookMs) => pauseAfter(tookMs, toRenewPause(options.load.leaseMs)),
      machine.#closing.signal,
    );
    await machine.#fill();
    return machine;
  }

  /** Its loops begin at different moments. */
  start(): void {
    this.#flushedAt = performance.now();
    const { inFlight, turns, turnMs } = this.#load;
    const endEveryMs = (turns * turnMs) / inFlight;
    this.#loops.push(
      this.#repeat(
        () => this.#writeTurns(),
        (tookMs) => pauseAfter(tookMs, flushPause),
      ),
      this.#repeat(
        () => this.#replaceOne(),
        (tookMs) => endEveryMs - tookMs,
      ),
      this.#follow(),
    );
  }

  /** Ends its loops; `start` begins them again. */
  async rest(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#loops);
    this.#loops = [];
    this.#stop = new AbortController();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rest();
    this.#closing.abort();
    await this.#renewing;
    await this.#store[Symbol.asyncDispose]();
  }

  #nextId(): WorkerId {
    this.#lives += 1;
    return workerId.parse(`${this.#name}:${this.#lives}`);
  }

  async #register(): Promise<void> {
    await this.#store.registerWorker({ id: this.#id, host: this.#name, pid: process.pid }, { leaseMs: this.#load.leaseMs });
  }

  /** A renewal names what it holds, so none may be under way. */
  async #claim(limit: number): Promise<readonly Claim[]> {
    const turn = this.#claiming;
    const done = Promise.withResolvers<void>();
    this.#claiming = done.promise;
    await turn;
    try {
      const claims = await this.#store.claim(this.#id, limit);
      for (const claim of claims) this.#held.set(claim.id, claim);
      return claims;
    } finally {
      done.resolve();
    }
  }

  async #fill(): Promise<void> {
    await this.#claim(this.#load.inFlight);
  }

  async #run(claim: Claim): Promise<void> {
    await this.#times().time('move', () => this.#store.move(claim, 'ready'));
    await this.#times().time('move', () => this.#store.move(claim, 'run'));
    await this.#times().time('move', () => this.#store.place(claim, {}));
  }

  async #repeat(work: () => Promise<void>, toPauseMs: (tookMs: number) => number, signal: AbortSignal = this.#stop.signal): Promise<void> {
    const rest = (ms: number) => pause(Math.max(0, ms), undefined, { signal }).catch(() => {}); // the loop ends
    await rest(Math.random() * toPauseMs(0));
    while (!signal.aborted) {
      const startedAt = performance.now();
      await work().catch(() => {
        this.#times().failed += 1;
      });
      await rest(toPauseMs(performance.now() - startedAt));
    }
  }

  async #renew(): Promise<void> {
    const store = this.#store;
    const { leaseMs } = this.#load;
    const report = makeReport(1);
    const turn = this.#claiming;
    const done = Promise.withResolvers<void>();
    this.#claiming = done.promise;
    await turn;
    const startedAt = performance.now();
    const claims = [...this.#held.values()].map(({ id, attempt }) => ({ id, attempt }));
    const isNaming = startedAt - this.#namedAt >= namesMs;
    if (isNaming) this.#namedAt = startedAt;
    const renewed = this.#times().time('renew', () =>
      Promise.all([
        store.renew(this.#id, { leaseMs, report, ...(isNaming && { held: { claims, ...rules } }) }),
        store.reportGate(this.#id, { pause: 0, generating: claims.length }),
      ]),
    );
    const [{ alive }] = await renewed.finally(() => done.resolve());
    if (!alive) {
      this.#times().leasesEnded += 1;
      this.#held.clear();
      this.#id = this.#nextId();
      await this.#register();
      await this.#fill();
    }
    if (performance.now() < this.#loadsAt) return;
    const lookedAt = performance.now();
    await this.#times().time('loads', () => store.backendLoads());
    this.#loadsAt = performance.now() + pauseAfter(performance.now() - lookedAt, loadsPause);
  }

  /** The turns that ended since the last time. */
  async #writeTurns(): Promise<void> {
    const now = performance.now();
    const due = ((now - this.#flushedAt) * this.#held.size) / this.#load.turnMs;
    const count = Math.floor(due) + Number(Math.random() < due % 1);
    this.#flushedAt = now;
    const held = [...this.#held.values()];
    const chosen = Array.from({ length: count }, () => held[Math.floor(Math.random() * held.length)]).filter((one) => one !== undefined);
    if (chosen.length === 0) return;
    const data = { turn: 1, sampled_tokens: 100, context_tokens: 8_000, model_ms: 1_000, tool_ms: 10, calls: 1 };
    const events = chosen.map(({ id, worker }) => ({ kind: 'turn-end' as const, rolloutId: id, workerId: worker, data }));
    // A context is written again when it has grown by half: in about half of the turns.
    const contexts = chosen.filter(() => Math.random() < 0.5).map((claim) => ({ claim, tokens: 8_000 }));
    await this.#times().time('turns', () =>
      Promise.all([this.#store.appendEvents(events), ...(contexts.length > 0 ? [this.#store.noteTraffic({ contexts, errors: [] })] : [])]),
    );
    this.#times().turnsWritten += chosen.length;
  }

  /** The oldest ends, and another is claimed. */
  async #replaceOne(): Promise<void> {
    const store = this.#store;
    const [oldest] = this.#held.values();
    if (oldest) {
      await this.#times().time('move', () => store.move(oldest, 'evaluate'));
      const ending = { state: 'done', result: makeResult(1), trajectory: makeTrajectory(oldest.id, oldest.attempt) } as const;
      await this.#times().time('end', () => store.finish(oldest, ending));
      this.#held.delete(oldest.id);
    }
    const claimed = await this.#times().time('claim', () => this.#claim(1));
    for (const claim of claimed) await this.#run(claim);
  }

  async #follow(): Promise<void> {
    const after = await this.#store.lastEventId();
    const tail = new EventTail({ store: this.#store, after, kinds: workerEvents, gapMs: tailGapMs, clock: systemClock, log: silentLog });
    const { signal } = this.#stop;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await tail[Symbol.asyncDispose]();
  }
}
