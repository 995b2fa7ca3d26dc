// A worker: claims rollouts when its init stage has room, runs their attempts, and keeps its lease. Pull, not push, so load
// balances itself; a worker that loses its lease drops everything and begins again under a new id.

import { hostname } from 'node:os';
import { type Event, RolloutError, type RolloutId, type WorkerId, type WorkerReport, workerId } from '@millrace/protocol';
import { sleep } from '../base/clock.ts';
import type { LoopLag } from '../base/loop-lag.ts';
import { Slots } from '../base/slots.ts';
import { PolicyGate } from '../inference/policy-gate.ts';
import { EventTail } from '../store/event-tail.ts';
import { type AttemptDeps, Fenced, HandBack, runClaimed } from './attempt.ts';
import { Stage } from './stage.ts';
import { TurnNews } from './turn-news.ts';

export type WorkerDeps = Omit<AttemptDeps, 'stages' | 'onTurn' | 'gate'> & { readonly loopLag: LoopLag };

interface Held {
  readonly abort: AbortController;
  readonly ended: Promise<void>;
}

/** How long a worker waits for news before it looks by itself. */
const pollMs = 1000;
/** What killed workers of this machine left behind is looked for so often. */
const sweepMs = 30_000;
/** Turns are told to the log in bunches. */
const turnBunchMs = 100;

export class Worker implements AsyncDisposable {
  readonly #deps: WorkerDeps;
  readonly #attempt: AttemptDeps;
  readonly #places: Slots;
  readonly #gate = new PolicyGate({ onStill: () => void this.#reportGate() });
  readonly #held = new Map<RolloutId, Held>();
  /** Cancels heard of rollouts not held: the answer to a claim may still be under way. */
  readonly #earlyCancels = new Set<RolloutId>();
  readonly #closing = new AbortController();
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[] = [];
  readonly #news: TurnNews;
  #id: WorkerId;
  #lives = 0;
  #turns = 0;
  #sampledTokens = 0;
  #weights: Promise<void> = Promise.resolve();
  #weightsUnread = false;
  #wake = Promise.withResolvers<void>();

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#id = this.#nextId();
    const { config, clock } = deps;
    this.#news = new TurnNews({ store: deps.store, clock, traffic: deps.pool.traffic });
    this.#places = new Slots(config.readySlots, () => this.#wakeUp());
    this.#attempt = {
      ...deps,
      gate: this.#gate,
      stages: {
        init: new Stage('init', config.initSlots, { clock, onFree: () => this.#wakeUp() }),
        run: new Stage('run', config.runSlots, { clock }),
        evaluate: new Stage('evaluate', config.evaluateSlots, { clock }),
      },
      onTurn: (record, report) => {
        this.#turns += 1;
        this.#sampledTokens += report.sampledTokens;
        this.#news.add(record.claimed, this.#id, report);
      },
    };
  }

  get id(): WorkerId {
    return this.#id;
  }

  /** Registers, and works until it is disposed. */
  async start(): Promise<void> {
    const { store, config, clock } = this.#deps;
    await store.registerWorker({ id: this.#id, host: hostname(), pid: process.pid }, config);
    const after = await store.lastEventId();
    await this.#readWeights();
    const tail = new EventTail({
      store,
      kinds: [
        'rollout-queue',
        'rollout-cancel',
        'backend-join',
        'backend-drain',
        'backend-leave',
        'backend-break',
        'backend-recovered',
        'policy-pause',
        'policy-resume',
      ],
      after,
      clock,
      log: this.#deps.log,
    });
    tail.subscribe((events) => this.#hear(events));
    this.#stopping.signal.addEventListener('abort', () => void tail[Symbol.asyncDispose](), { once: true });
    this.#loops.push(
      this.#repeat('claim', () => this.#claim(), this.#closing.signal),
      this.#repeat('renew', () => this.#renew(), this.#stopping.signal),
      this.#repeat('turns', () => this.#tellTurns(), this.#stopping.signal),
      this.#repeat('sweep', () => this.#sweep(), this.#stopping.signal),
    );
  }

  /** Hands back whatever is held, without waiting for its end. */
  handBackNow(): void {
    this.#closing.abort();
    this.#dropAll(new HandBack());
  }

  /** Finishes what runs, up to the configured time, hands back the rest, and gives up its lease. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { store, config, clock } = this.#deps;
    this.#closing.abort();
    this.#wakeUp();
    await this.#loops[0];
    const all = Promise.all([...this.#held.values()].map((held) => held.ended));
    const stopWaiting = clock.after(config.handBackMs, () => this.#dropAll(new HandBack()));
    await all;
    stopWaiting();
    this.#stopping.abort();
    await Promise.all(this.#loops);
    await this.#news.tell(this.#id, true);
    await store.dropWorker(this.#id, config);
  }

  #nextId(): WorkerId {
    this.#lives += 1;
    const host = hostname()
      .replace(/[^A-Za-z0-9.-]/g, '-')
      .slice(0, 80);
    return workerId.parse(`w-${host}:${process.pid}:${Math.trunc(this.#deps.clock.now())}:${this.#lives}`);
  }

  #wakeUp(): void {
    this.#wake.resolve();
  }

  async #repeat(what: string, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await work();
      } catch (error) {
        // A store that fails for a while must not end the worker: it goes on when the store does.
        this.#deps.log.error('worker-loop-failed', { workerId: this.#id, what, error: String(error) });
        await this.#pause(pollMs);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, { clock: this.#deps.clock, signal: this.#stopping.signal }).catch(() => {}); // Stopping ends the pause.
  }

  async #claim(): Promise<void> {
    const { store, clock } = this.#deps;
    this.#wake = Promise.withResolvers();
    const room = Math.min(this.#places.free, this.#attempt.stages.init.free);
    const claims = room > 0 ? await store.claim(this.#id, room) : [];
    for (const claimed of claims) {
      const place = this.#places.take();
      if (!place) throw new RolloutError('internal', `claimed ${claimed.id} without a place in the ready buffer`);
      const abort = new AbortController();
      const ended = runClaimed(this.#attempt, claimed, { signal: abort.signal, place }).finally(() => {
        this.#held.delete(claimed.id);
        this.#news.forget(claimed.id);
        this.#wakeUp();
      });
      this.#held.set(claimed.id, { abort, ended });
      if (this.#earlyCancels.delete(claimed.id)) this.#cancel(claimed.id);
    }
    if (this.#closing.signal.aborted || (claims.length > 0 && claims.length === room)) return;
    // With room, news or a poll brings more; without room, only a rollout that moves on does.
    const stopPoll = clock.after(pollMs, () => this.#wakeUp());
    await this.#wake.promise;
    stopPoll();
  }

  async #renew(): Promise<void> {
    const { store, config, log } = this.#deps;
    const renewal = store.renew(this.#id, { leaseMs: config.leaseMs, report: this.report() });
    const [{ alive, cancelled }] = await Promise.all([renewal, this.#reportGate()]);
    if (!alive) {
      log.warn('worker-fenced', { workerId: this.#id, held: this.#held.size });
      this.#dropAll(new Fenced());
      this.#id = this.#nextId();
      await store.registerWorker({ id: this.#id, host: hostname(), pid: process.pid }, config);
    }
    if (this.#weightsUnread) this.#updateWeights();
    this.#earlyCancels.clear();
    for (const id of cancelled) this.#cancel(id);
    await store.expire(config);
    this.#deps.pool.hear(await store.backendLoads());
    await this.#pause(Math.min(config.leaseMs / 3, pollMs));
  }

  async #tellTurns(): Promise<void> {
    await this.#news.tell(this.#id);
    await this.#pause(turnBunchMs);
  }

  async #sweep(): Promise<void> {
    const swept = await this.#deps.driver.sweep();
    await this.#deps.layers.sweep();
    if (swept > 0) this.#deps.log.warn('sandboxes-swept', { count: swept });
    await this.#pause(sweepMs);
  }

  #hear(events: readonly Event[]): void {
    for (const { kind, rollout_id } of events) {
      if (kind === 'rollout-queue') this.#wakeUp();
      if (kind === 'rollout-cancel' && rollout_id && !this.#cancel(rollout_id)) this.#earlyCancels.add(rollout_id);
    }
    if (events.some(({ kind }) => kind.startsWith('backend-') || kind.startsWith('policy-'))) this.#updateWeights();
  }

  /** One reading after the other, so that an old one never undoes a new one. */
  #updateWeights(): void {
    this.#weights = this.#weights
      .then(() => this.#readWeights())
      .catch((error) => {
        this.#weightsUnread = true;
        this.#deps.log.error('weights-unread', { error: String(error) });
      });
  }

  /** A pause takes effect before all else; a resume only when the backends' new versions are known. */
  async #readWeights(): Promise<void> {
    const { store, pool } = this.#deps;
    this.#weightsUnread = false;
    const policy = await store.policy();
    if (policy.state !== 'running') this.#gate.tell(policy);
    pool.update(await store.backends());
    if (policy.state === 'running') this.#gate.tell(policy);
  }

  /** A pause is over for the others only when the store has this; what fails is told again with the next renewal. */
  async #reportGate(): Promise<void> {
    try {
      await this.#deps.store.reportGate(this.#id, this.#gate.report);
    } catch (error) {
      this.#deps.log.error('gate-report-failed', { error: String(error) });
    }
  }

  #cancel(id: RolloutId): boolean {
    const held = this.#held.get(id);
    held?.abort.abort(new RolloutError('cancelled', 'a caller cancelled it'));
    return held !== undefined;
  }

  #dropAll(reason: Error): void {
    for (const { abort } of this.#held.values()) abort.abort(reason);
  }

  report(): WorkerReport {
    const { init, run, evaluate } = this.#attempt.stages;
    const ready = { active: run.report.waiting, waiting: 0, slots: this.#places.count };
    return {
      stages: { init: init.report, ready, run: run.report, evaluate: evaluate.report },
      held: this.#held.size,
      backends: this.#deps.pool.inFlight(),
      calls: this.#deps.pool.calls(),
      turns: this.#turns,
      sampled_tokens: this.#sampledTokens,
      loop_lag_ms: this.#deps.loopLag.read(),
      rss_bytes: process.memoryUsage.rss(),
    };
  }
}
