// A worker: claims rollouts when its init stage has room, runs their attempts, and renews its lease. Workers pull work, so the load
// balances itself. A worker that loses its lease drops everything and starts again under a new id.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { pauseAfter, sleep } from '@millrace/base/clock';
import { Slots } from '@millrace/base/slots';
import { type Event, messageOf, RolloutError, type RolloutId, type WorkerId, type WorkerReport } from '@millrace/protocol';
import type { CheckpointShelf } from '@millrace/sandbox';
import { type ClaimedRollout, EventTail, labelsOf, type WorkerStore, workerEvents } from '@millrace/store';
import { TokenRate } from '../inference/pool/token-rate.ts';
import { type AttemptDeps, Fenced, HandBack, runClaimed } from './attempt/attempt.ts';
import { ControlResults } from './attempt/control-results.ts';
import { evaluateWaitingOf } from './attempt/pipeline-config.ts';
import { openStages } from './attempt/stage.ts';
import { type Continuing, openContinuing, sweepCheckpoints } from './continue/continuation.ts';
import { LeaseRenewal } from './lease-renewal.ts';
import { PolicyFollower } from './policy-follower.ts';
import { flushPause, TurnReporter } from './turn-reporter.ts';
import { makeWorkerId } from './worker-id.ts';
import { loadsPause, type ReportDeps, toRenewPause, toWorkerReport } from './worker-report.ts';

type WorkerDeps = Omit<AttemptDeps, 'stages' | 'onTurn' | 'gate' | 'controls' | 'continuing'> &
  ReportDeps & {
    /** In its ids, and in no other process's: made at its start unless set. */
    readonly launch?: string;
    /** Where checkpoints of this machine are; without it, no rollout continues. */
    readonly shelf?: CheckpointShelf;
  } & Partial<Pick<Continuing, 'restMs' | 'budget'>>;

interface HeldRollout {
  readonly attempt: number;
  /** It waits for evaluate, is in it, or is being saved. */
  hasRun: boolean;
  readonly abort: AbortController;
  readonly drop: AbortController;
  readonly ended: Promise<void>;
}

/** How long a worker waits for an event before it polls. */
const pollMs = 1000;
/** How often sandboxes and layers that killed workers of this machine left behind are removed. */
const sweepMs = 30_000;
/** Hundreds of events a second, and few of them are for this worker. */
const tailGapMs = 20;

export class Worker implements AsyncDisposable {
  readonly #deps: WorkerDeps;
  readonly #attempt: AttemptDeps;
  /** The ready buffer. */
  readonly #readySlots: Slots;
  readonly #policy: PolicyFollower;
  readonly #held = new Map<RolloutId, HeldRollout>();
  /** Cancels of rollouts that are not held: the reply to a claim may still be on its way. */
  readonly #earlyCancels = new Set<RolloutId>();
  /** A renewal names what the worker holds, so no claim may be under way while one is. */
  readonly #claimLock = new Slots(1);
  readonly #closing = new AbortController();
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[] = [];
  readonly #turnReporter: TurnReporter;
  readonly #tokenRate: TokenRate;
  readonly #lease: LeaseRenewal;
  readonly #launch: string;
  #id: WorkerId;
  #lives = 0;
  #turns = 0;
  #readLoadsAt = 0;
  #wake = Promise.withResolvers<void>();

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#launch = deps.launch ?? randomUUID().slice(0, 8);
    this.#id = this.#nextId();
    const { config, clock, shelf } = deps;
    this.#turnReporter = new TurnReporter({ store: deps.store, clock, traffic: deps.pool.traffic });
    this.#tokenRate = new TokenRate(clock);
    this.#lease = new LeaseRenewal(deps);
    this.#readySlots = new Slots(config.readySlots, () => this.#wakeUp());
    this.#policy = new PolicyFollower({ ...deps, worker: () => this.#id });
    deps.pool.useGate(this.#policy.gate);
    this.#attempt = {
      ...deps,
      gate: this.#policy.gate,
      ...(shelf && { continuing: openContinuing({ ...deps, shelf }) }),
      controls: new ControlResults(clock),
      stages: openStages(config, { clock, onInitFree: () => this.#wakeUp() }),
      onTurn: (record, report) => {
        this.#turns += 1;
        this.#turnReporter.add(record.claimed, this.#id, report);
      },
    };
  }

  get id(): WorkerId {
    return this.#id;
  }

  /** Registers, and then works until it is disposed. */
  async start(): Promise<void> {
    const { store, config, clock } = this.#deps;
    await store.registerWorker({ id: this.#id, host: hostname(), pid: process.pid }, config);
    const after = await store.lastEventId();
    await this.#policy.read();
    const tail = new EventTail({ store, kinds: workerEvents, after, gapMs: tailGapMs, clock, log: this.#deps.log });
    tail.subscribe((events) => this.#handleEvents(events));
    this.#stopping.signal.addEventListener('abort', () => void tail[Symbol.asyncDispose](), { once: true });
    this.#loops.push(
      this.#repeat('claim', () => this.#claim(), this.#closing.signal),
      this.#repeat('renew', () => this.#renew(), this.#stopping.signal),
      this.#repeat('turns', () => this.#flushTurns(), this.#stopping.signal),
      this.#repeat('sweep', () => this.#sweep(), this.#stopping.signal),
    );
  }

  /** Returns everything that it holds to the queue at once. */
  handBackNow(): void {
    this.#closing.abort();
    this.#dropAll(new HandBack());
  }

  /** Lets rollouts finish up to the configured time, returns the rest, and gives up its lease. */
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
    await this.#turnReporter.flush(this.#id, true);
    await this.#reportLeave();
    await store.dropWorker(this.#id, config);
  }

  /** Its last report says that it left; a worker without one was lost. */
  async #reportLeave(): Promise<void> {
    const { store, config } = this.#deps;
    await store.renew(this.#id, { leaseMs: config.leaseMs, report: this.report() }).catch(() => {}); // the drop that follows reports why
  }

  #nextId(): WorkerId {
    return makeWorkerId(this.#launch, ++this.#lives);
  }

  #wakeUp(): void {
    this.#wake.resolve();
  }

  async #repeat(what: string, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await work();
      } catch (error) {
        // A store that fails for a while must not end the worker: it continues when the store does.
        this.#deps.log.error('worker-loop-failed', { workerId: this.#id, what, error: messageOf(error) });
        await this.#pause(pollMs);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, { clock: this.#deps.clock, signal: this.#stopping.signal }).catch(() => {}); // Stopping ends the pause.
  }

  async #claim(): Promise<void> {
    this.#wake = Promise.withResolvers();
    const isFull = await this.#take();
    if (this.#closing.signal.aborted || isFull) return;
    // With room, an event or a poll wakes it up; without room, only a rollout that leaves its slot does.
    const stopPoll = this.#deps.clock.after(pollMs, () => this.#wakeUp());
    await this.#wake.promise;
    stopPoll();
  }

  /** Claims what there is room for and starts it. True when the queue filled all the room, so that more may follow. */
  async #take(): Promise<boolean> {
    using _lock = await this.#claimLock.acquire({ signal: this.#stopping.signal });
    const room = this.#countRoom();
    const { store, machine } = this.#deps;
    const claiming = room > 0 ? store.claim(this.#id, room, machine && labelsOf(machine)) : Promise.resolve([]);
    claiming.catch(() => this.#lease.nameNext());
    const claims = await claiming;
    for (const claimed of claims) this.#start(claimed);
    return claims.length > 0 && claims.length === room;
  }

  /** None while too many finished runs wait, which would fill the memory, or while other machines can reach backends and this one cannot. */
  #countRoom(): number {
    const { init, evaluate } = this.#attempt.stages;
    const hasRun = [...this.#held.values()].filter((held) => held.hasRun).length;
    const isLineFull = hasRun - evaluate.report.active >= evaluateWaitingOf(this.#deps.config);
    return isLineFull || this.#deps.pool.isCutOff ? 0 : Math.min(this.#readySlots.free, init.free);
  }

  #start(claimed: ClaimedRollout): void {
    const readySlot = this.#readySlots.take();
    if (!readySlot) throw new RolloutError('internal', `claimed ${claimed.id} without a slot in the ready buffer`);
    const [abort, drop] = [new AbortController(), new AbortController()];
    const onRunEnd = () => {
      held.hasRun = true;
    };
    const leaving = { signal: this.#closing.signal, handBack: () => abort.abort(new HandBack()) };
    const options = { signal: abort.signal, dropped: drop.signal, leaving, readySlot, onRunEnd };
    const ended = runClaimed(this.#attempt, claimed, options).finally(() => {
      this.#wakeUp();
      // After a retry, this worker may already hold the next attempt.
      if (this.#held.get(claimed.id) !== held) return;
      this.#held.delete(claimed.id);
      this.#turnReporter.forget(claimed.id);
    });
    const held: HeldRollout = { attempt: claimed.attempt, hasRun: false, abort, drop, ended };
    this.#held.set(claimed.id, held);
    if (this.#earlyCancels.delete(claimed.id)) this.#cancel(claimed.id);
  }

  async #renewLease(): ReturnType<WorkerStore['renew']> {
    using _lock = await this.#claimLock.acquire({ signal: this.#stopping.signal });
    const claims = () => [...this.#held].map(([id, { attempt }]) => ({ id, attempt }));
    return await this.#lease.renew(this.#id, this.report(), claims);
  }

  async #renew(): Promise<void> {
    const { store, config, log, clock } = this.#deps;
    const startedAt = clock.monotonic();
    const [{ alive, cancelled }] = await Promise.all([this.#renewLease(), this.#policy.report()]);
    if (!alive) {
      log.warn('worker-fenced', { workerId: this.#id, held: this.#held.size });
      this.#dropAll(new Fenced());
      this.#id = this.#nextId();
      await store.registerWorker({ id: this.#id, host: hostname(), pid: process.pid }, config);
    }
    this.#policy.updateIfFailed();
    this.#earlyCancels.clear();
    for (const id of cancelled) this.#cancel(id);
    await store.expire(config);
    await this.#readLoads();
    await this.#pause(pauseAfter(clock.monotonic() - startedAt, toRenewPause(config.leaseMs)));
  }

  async #readLoads(): Promise<void> {
    const { store, pool, clock } = this.#deps;
    const startedAt = clock.monotonic();
    if (startedAt < this.#readLoadsAt) return;
    pool.updateLoads(await store.backendLoads());
    this.#turnReporter.noteAsleep(pool.asleep());
    await pool.divideCaches((caches) => store.oldestOn(this.#id, caches));
    this.#readLoadsAt = startedAt + pauseAfter(clock.monotonic() - startedAt, loadsPause);
  }

  async #flushTurns(): Promise<void> {
    const startedAt = this.#deps.clock.monotonic();
    await Promise.all([this.#turnReporter.flush(this.#id), this.#attempt.continuing?.turns.flush()]);
    await this.#pause(pauseAfter(this.#deps.clock.monotonic() - startedAt, flushPause));
  }

  async #sweep(): Promise<void> {
    const { driver, layers, log, clock } = this.#deps;
    const [swept] = await Promise.all([driver.sweep(), layers.sweep(), sweepCheckpoints(this.#attempt.continuing, clock)]);
    if (swept > 0) log.warn('sandboxes-swept', { count: swept });
    await this.#pause(sweepMs);
  }

  #handleEvents(events: readonly Event[]): void {
    for (const { kind, rollout_id } of events) {
      if (kind === 'rollout-queue') this.#wakeUp();
      if (kind === 'rollout-cancel' && rollout_id && !this.#cancel(rollout_id)) this.#earlyCancels.add(rollout_id);
    }
    if (events.some(({ kind }) => kind.startsWith('backend-') || kind.startsWith('policy-'))) this.#policy.update();
  }

  #cancel(id: RolloutId): boolean {
    const held = this.#held.get(id);
    held?.abort.abort(new RolloutError('cancelled', 'a caller cancelled it'));
    return held !== undefined;
  }

  #dropAll(reason: Error): void {
    for (const { abort, drop } of this.#held.values()) {
      abort.abort(reason);
      drop.abort(reason);
    }
  }

  report(): WorkerReport {
    return toWorkerReport(this.#deps, {
      stages: this.#attempt.stages,
      readySlots: this.#readySlots.count,
      held: this.#held.size,
      turns: this.#turns,
      tokenRate: this.#tokenRate,
      isDraining: this.#closing.signal.aborted,
    });
  }
}
