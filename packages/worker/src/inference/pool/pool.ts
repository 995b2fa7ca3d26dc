// The pool of backends. A rollout is placed once, among all rollouts of all workers, and keeps its backend: it moves only when that
// backend fails, leaves, breaks, or is far busier than the others. The pool does not poll.

import { type Clock, sleep, systemClock } from '@millrace/base/clock';
import { raceSignal } from '@millrace/base/race';
import type { BackendRecord } from '@millrace/engines';
import { type BackendId, type CallProgressReport, definedOf, RolloutError } from '@millrace/protocol';
import {
  type BackendLoad,
  type CacheSize,
  chooseBackend,
  defaultRouting,
  isFarBusier,
  type OldestOn,
  type PlacedRollout,
  type Placements,
  type PlaceOptions,
} from '@millrace/store';
import { Agent } from 'undici';
import { CacheGates } from '../cache/cache-gates.ts';
import { readProgress } from './call-progress.ts';
import { HealthMonitor } from './health.ts';
import { BackendLease, type PoolEntry } from './lease.ts';
import { type EntryDeps, type OpenEntry, openEntry, openPlainEntry } from './open-entry.ts';
import { type PoolOptions, poolDefaults } from './pool-options.ts';
import { checkHealth, type ProbeGate, tryOut } from './probe.ts';
import { isUp, toOwnView } from './record-view.ts';
import { checkEngine, probeServer } from './server-probe.ts';
import { SessionFinisher } from './session-finisher.ts';
import { Traffic } from './traffic.ts';

interface AcquireOptions {
  readonly signal: AbortSignal;
  /** Required by a pool with placements. */
  readonly rollout?: PlacedRollout | undefined;
  /** The length of its context. */
  readonly tokens?: number | undefined;
}

/** Why a rollout moves: its call failed or its backend is gone, its backend is too busy, or no backend has its prefix cached. */
export type MoveReason = 'failed' | 'busy' | 'flushed';

interface MoveOptions extends Pick<AcquireOptions, 'signal' | 'tokens'> {
  readonly reason: MoveReason;
}

/** Who waits for a backend. */
interface Applicant {
  readonly signal: AbortSignal;
  readonly rollout?: PlacedRollout | undefined;
  readonly left?: readonly BackendId[];
}

/** How long a busy backend that names no time is left alone. It doubles with each busy reply in a row. */
const busyMs = 500;
const longestBusyMs = 30_000;

export class BackendPool implements AsyncDisposable {
  readonly traffic = new Traffic();
  readonly #entries = new Map<BackendId, OpenEntry>();
  /** Backends that have left, while their last calls run. */
  readonly #left = new Set<OpenEntry>();
  readonly #agent = new Agent();
  readonly #options: Omit<PoolOptions, 'open'>;
  readonly #clock: Clock;
  readonly #open: (record: BackendRecord) => OpenEntry;
  readonly #health: HealthMonitor | undefined;
  readonly #sessions: SessionFinisher;
  readonly #caches: CacheGates | undefined;
  readonly #closed = new AbortController();
  #gate: ProbeGate | undefined;
  #isCutOff = false;
  #loads: ReadonlyMap<BackendId, BackendLoad> = new Map();
  #someUp = Promise.withResolvers<void>();

  constructor({ open, ...options }: PoolOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#open = (record) => (open ? openPlainEntry(record, open, this.#clock) : openEntry(record, this.#entryDeps()));
    this.#health = options.placements && this.#openHealth(options.placements);
    this.#sessions = new SessionFinisher(this.#agent, this.#clock);
    this.#caches = options.holdForCache ? new CacheGates(this.#clock) : undefined;
  }

  /** Whether calls of later turns have a higher priority. */
  get prioritizesLong(): boolean {
    return this.#options.prioritizeLong ?? false;
  }

  /** Whether this machine can reach none of the backends that other machines use. */
  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  /** From now on probes sample only while the gate is open, and count as calls. */
  useGate(gate: ProbeGate): void {
    this.#gate = gate;
  }

  /** Takes the complete list of records: backends that are not in it leave. The others keep their rollouts and connections. */
  update(all: readonly BackendRecord[]): void {
    const records = all.map((record) => toOwnView(record, this.#options.machine));
    const present = new Set(records.map(({ id }) => id));
    for (const [id, entry] of this.#entries) {
      if (present.has(id)) continue;
      entry.hasLeft = true;
      this.#left.add(entry);
      // A failed close means that the pool itself is closing, which ends the calls.
      entry.close().then(
        () => this.#left.delete(entry),
        () => undefined,
      );
      this.#entries.delete(id);
    }
    for (const record of records) {
      const entry = this.#entries.get(record.id);
      if (entry) entry.update(record);
      else this.#entries.set(record.id, this.#open(record));
    }
    this.#isCutOff = all.some(isUp) && !records.some(isUp);
    this.#health?.update(records);
    this.#caches?.update(records);
    if (records.some(isUp)) {
      this.#someUp.resolve();
      this.#someUp = Promise.withResolvers();
    }
  }

  /** The current load of each backend over all workers. */
  updateLoads(loads: readonly BackendLoad[]): void {
    this.#loads = new Map(loads.map((load) => [load.id, load]));
  }

  /** The rollouts here whose contexts need no room in a shared KV cache, because they are in a tool that takes long. */
  asleep(): ReadonlySet<string> {
    return this.#caches?.asleep(this.#entries.values(), this.#loads) ?? new Set();
  }

  /** Reads which rollouts are the oldest that fit, for KV caches with rollouts of other workers that are too small for all. */
  async divideCaches(readOldest: (caches: readonly CacheSize[]) => Promise<readonly OldestOn[]>): Promise<void> {
    const shared = this.#caches?.findShared(this.#entries.values(), this.#loads) ?? [];
    this.#caches?.divide(shared.length === 0 ? [] : await readOldest(shared));
  }

  /** Waits, first come, first served, while no backend is up. */
  async acquire({ signal, rollout, tokens }: AcquireOptions): Promise<BackendLease> {
    return await this.#waitForBackend({ signal, rollout }, definedOf({ tokens }));
  }

  /** Whether the rollout has been here for `spillTurns` turns and its backend is far busier than another that it has not left. */
  shouldMove(lease: BackendLease): boolean {
    const { placements, spillTurns = poolDefaults.spillTurns, routing = defaultRouting } = this.#options;
    if (!lease.backend || !lease.rollout || !placements || lease.turns < spillTurns) return false;
    const here = { inFlight: (this.#loads.get(lease.id)?.inFlight ?? 1) - 1 };
    const others = [...this.#entries.values()].filter(({ id, record }) => isUp(record) && id !== lease.id && !lease.left.includes(id));
    return others.some(({ id }) => isFarBusier(here, { inFlight: this.#loads.get(id)?.inFlight ?? 0 }, routing));
  }

  /**
   * Returns the lease to use from now on, which replaces the one given. After a failed call: another backend if one is up,
   * otherwise the same one while it is there, otherwise the next that comes up; a backend that was only busy is left alone for a
   * while and kept. For any other reason: the best backend now, which may be the same.
   */
  async move(lease: BackendLease, { signal, tokens, reason }: MoveOptions): Promise<BackendLease> {
    const size = definedOf({ tokens });
    if (reason !== 'failed' && lease.backend) return await this.#improve(lease, { ...size, isSticky: reason === 'busy' }, signal);
    if (lease.last.outcome === 'busy' && lease.backend) {
      await this.#leaveAlone(lease, signal);
      if (lease.backend && lease.busyCalls < 2) return lease;
    }
    const id = await this.#choose(lease, { ...size, exclude: [lease.id] });
    if (id === undefined && lease.backend) return lease;
    return await this.#replace(lease, id, { signal, left: lease.left });
  }

  /** Rollouts of this worker on each backend in the pool. */
  inFlight(): Record<string, number> {
    return Object.fromEntries(Array.from(this.#entries.values(), ({ id, leases }) => [id, leases]));
  }

  /** Calls of this worker in flight on each backend. */
  calls(): Record<string, number> {
    return Object.fromEntries(Array.from(this.#entries.values(), ({ id, progress }) => [id, progress.calls]));
  }

  /** How they get on; only of backends with calls. */
  callProgress(): Record<string, CallProgressReport> {
    return readProgress(this.#entries.values());
  }

  /** Rollouts of this worker that wait for room in the KV cache of each backend. */
  heldForCache(): Record<string, number> {
    return this.#caches?.held() ?? {};
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new RolloutError('not-running', 'the pool of backends is closed'));
    this.#caches?.close();
    await this.#health?.[Symbol.asyncDispose]();
    for (const entry of [...this.#entries.values(), ...this.#left]) await entry[Symbol.asyncDispose]();
    await this.#agent.destroy();
  }

  async #waitForBackend(applicant: Applicant, options: PlaceOptions): Promise<BackendLease> {
    const signal = AbortSignal.any([applicant.signal, this.#closed.signal]);
    for (;;) {
      signal.throwIfAborted();
      // Taken before the choice, so that no backend that comes up during it is missed.
      const { promise } = this.#someUp;
      const chosen = this.#choose(applicant, options);
      const id = chosen instanceof Promise ? await chosen : chosen;
      // The store may know a backend whose event has not arrived here, or still list one that has left.
      const entry = id === undefined ? undefined : this.#entries.get(id);
      signal.throwIfAborted();
      if (entry) return this.#openLease(entry, applicant);
      await raceSignal(promise, signal);
    }
  }

  /** Without shared placements the choice is synchronous: a rollout must count before the next one is placed. */
  #choose({ rollout }: Pick<Applicant, 'rollout'>, options: PlaceOptions): BackendId | undefined | Promise<BackendId | undefined> {
    const { placements, routing } = this.#options;
    if (placements && rollout) return placements.place(rollout, { ...options, ...definedOf({ routing }) });
    const up = [...this.#entries.values()].filter(({ record }) => isUp(record));
    const candidates = up.map(({ id, leases }) => ({ id, inFlight: leases, tokens: 0, siblings: 0 }));
    return chooseBackend(candidates, options)?.id;
  }

  /** The store decides with its current counts. A lease that stays does not ask again for `spillTurns` turns. */
  async #improve(lease: BackendLease, options: PlaceOptions & { readonly isSticky: boolean }, signal: AbortSignal): Promise<BackendLease> {
    const { isSticky } = options;
    lease.turns = 0;
    const id = await this.#choose(lease, { ...options, exclude: isSticky ? lease.left : [] });
    if (id === undefined || id === lease.id) return lease;
    return await this.#replace(lease, id, { signal, left: isSticky ? [...lease.left, lease.id] : [] });
  }

  /** Opens the new lease first, so that the rollout counts somewhere at every moment. Waits if the chosen backend is not here yet. */
  async #replace(lease: BackendLease, id: BackendId | undefined, options: Omit<Applicant, 'rollout'>): Promise<BackendLease> {
    const entry = id === undefined ? undefined : this.#entries.get(id);
    const applicant = { ...options, rollout: lease.rollout };
    const next = entry && this.#openLease(entry, applicant);
    lease[Symbol.dispose]();
    return next ?? (await this.#waitForBackend(applicant, {}));
  }

  async #leaveAlone({ last, busyCalls }: BackendLease, signal: AbortSignal): Promise<void> {
    const ms = Math.min(last.retryAfterMs ?? busyMs * 2 ** (busyCalls - 1), longestBusyMs);
    await sleep(ms, { clock: this.#clock, signal: AbortSignal.any([signal, this.#closed.signal]) });
  }

  #openLease(entry: PoolEntry, { rollout, left = [] }: Omit<Applicant, 'signal'>): BackendLease {
    const onEnd = (lease: BackendLease) => this.#finishSession(lease);
    const deps = { clock: this.#clock, traffic: this.traffic, health: this.#health, caches: this.#caches, onEnd };
    return new BackendLease({ entry, rollout, left }, deps);
  }

  #finishSession({ entry: { hasLeft, record }, rollout }: BackendLease): void {
    if (rollout && !hasLeft && !record.health?.brokenAtMs && !this.#closed.signal.aborted) this.#sessions.finish(record, rollout.id);
  }

  #entryDeps(): EntryDeps {
    const { placements, tokenizer, log } = this.#options;
    const isPaused = () => this.#gate !== undefined && !this.#gate.isOpen;
    return { calls: this.#options, placements, tokenizer, log, clock: this.#clock, signal: this.#closed.signal, isPaused };
  }

  #openHealth(placements: Placements): HealthMonitor {
    const find = (id: BackendId): PoolEntry => {
      const entry = this.#entries.get(id);
      if (!entry) throw new RolloutError('backend-failed', `${id} has left the pool`);
      return entry;
    };
    const common = { clock: this.#clock, dispatcher: this.#agent };
    return new HealthMonitor({
      placements,
      checkHealth: async (id, { signal }) => await checkHealth(find(id).record, { ...common, signal }),
      describe: async (id, { signal }) =>
        await probeServer(find(id).record, { clock: this.#clock, signal, tokenizer: this.#options.tokenizer }),
      waitForPolicy: async (options) => await this.#gate?.opened(options),
      tryOut: async (id, { signal }) => {
        using pass = await this.#gate?.pass({ signal });
        const { record, backend } = find(id);
        await tryOut(backend, { ...common, signal, ...definedOf({ cut: pass?.cut, adapter: pass?.adapter }) }).catch(async (error) => {
          await checkEngine(record, { clock: this.#clock, signal }); // one of another kind refuses for a reason that misleads
          throw error;
        });
      },
      breakAfter: this.#options.breakAfter ?? poolDefaults.breakAfter,
      machine: this.#options.machine,
      clock: this.#clock,
      log: this.#options.log,
    });
  }
}
