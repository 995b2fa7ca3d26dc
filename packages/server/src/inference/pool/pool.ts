// The pool of backends. A rollout is placed once, among all rollouts of all workers, and keeps its backend for its life: it moves
// when that one fails, leaves, breaks, or is far busier than the rest. Nothing here polls.

import type { BackendId } from '@millrace/protocol';
import { RolloutError } from '@millrace/protocol';
import { Agent } from 'undici';
import { type Clock, sleep, systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Pace } from '../../base/pace.ts';
import { raceSignal } from '../../base/race.ts';
import type { Backend, BackendRecord } from '../backends/backend.ts';
import { openBackend } from '../backends/open-backend.ts';
import { SessionEnds } from './finish-session.ts';
import { HealthWatch } from './health.ts';
import { type Entry, type Lease, PoolLease } from './lease.ts';
import type { BackendLoad, Placed, Placements, PlaceOptions } from './placements.ts';
import { checkHealth, tryOut } from './probe.ts';
import { chooseBackend, defaultRouting, isFarBusier, type Routing } from './routing.ts';
import { Traffic } from './traffic.ts';

export type { Lease } from './lease.ts';

export interface PoolOptions {
  readonly log?: Log;
  readonly pace?: Pace;
  readonly clock?: Clock;
  /** A backend from which nothing at all came for so long has failed its call. */
  readonly stallMs?: number;
  /** How a record becomes a backend; by its dialect, over the pool's own connections, where it is absent. */
  readonly open?: (record: BackendRecord) => Backend;
  /** Where placements and health are shared; a pool without it balances its own rollouts alone, and breaks no backend. */
  readonly placements?: Placements;
  readonly routing?: Routing;
  /** A rollout may leave a busy backend once in so many turns. */
  readonly spillTurns?: number;
  /** So many failed calls in a row break a backend. */
  readonly breakAfter?: number;
}

export interface AcquireOptions {
  readonly signal: AbortSignal;
  /** Whose place it is; a pool with placements needs it. */
  readonly rollout?: Placed;
  /** How long its context is. */
  readonly tokens?: number;
}

/** Why a rollout asks for another place: a call failed, its backend is far too busy, or no backend has its prefix any more. */
export type MoveReason = 'failed' | 'busy' | 'flushed';

export interface ReacquireOptions extends Pick<AcquireOptions, 'signal' | 'tokens'> {
  readonly reason: MoveReason;
}

type MaybeSoon<T> = T | Promise<T>;

interface Move {
  readonly id: BackendId | undefined;
  readonly left: readonly BackendId[];
  readonly signal: AbortSignal;
}

/** A backend that does not say how long it is busy is left alone for so long, twice as long each time it says so again. */
const busyMs = 500;
const longestBusyMs = 30_000;

export class BackendPool implements AsyncDisposable {
  readonly traffic = new Traffic();
  readonly #entries = new Map<BackendId, Entry>();
  readonly #agent = new Agent();
  readonly #options: PoolOptions;
  readonly #clock: Clock;
  readonly #open: (record: BackendRecord) => Backend;
  readonly #health: HealthWatch | undefined;
  readonly #sessionEnds: SessionEnds;
  readonly #closed = new AbortController();
  #loads: ReadonlyMap<BackendId, BackendLoad> = new Map();
  #someUp = Promise.withResolvers<void>();

  constructor({ open, ...options }: PoolOptions = {}) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#open = open ?? ((record) => openBackend(record, { dispatcher: this.#agent, ...options }));
    this.#health = options.placements && this.#openHealth(options.placements);
    this.#sessionEnds = new SessionEnds(this.#agent, this.#clock);
  }

  /** The records are all there are: others leave. Those that stay keep their rollouts and connections. */
  update(records: readonly BackendRecord[]): void {
    const present = new Set(records.map(({ id }) => id));
    for (const [id, entry] of this.#entries) {
      if (present.has(id)) continue;
      entry.hasLeft = true;
      this.#entries.delete(id);
    }
    for (const record of records) {
      const entry = this.#entries.get(record.id);
      if (!entry) {
        this.#entries.set(record.id, { id: record.id, record, backend: this.#open(record), held: 0, calls: 0, hasLeft: false });
        continue;
      }
      if (!isSame(entry.record, record)) entry.backend = this.#open(record);
      entry.record = record;
    }
    this.#health?.update(records);
    if (records.some(isUp)) {
      this.#someUp.resolve();
      this.#someUp = Promise.withResolvers();
    }
  }

  /** What runs on each backend over all workers, as of now. Only whether to ask for a better place depends on it. */
  hear(loads: readonly BackendLoad[]): void {
    this.#loads = new Map(loads.map((load) => [load.id, load]));
  }

  /** Waits, first come first served, while no backend is up. */
  async acquire({ signal, rollout, tokens }: AcquireOptions): Promise<Lease> {
    return await this.#wait({ signal, ...(rollout ? { rollout } : {}) }, tokens === undefined ? {} : { tokens });
  }

  /** Counts a turn of the lease. True when its backend is far too busy, and it should ask for another place. */
  isDue(lease: Lease): boolean {
    if (!(lease instanceof PoolLease) || !lease.backend) return false;
    lease.turns += 1;
    if (!lease.rollout || !this.#options.placements) return false;
    if (lease.turns < (this.#options.spillTurns ?? 8)) return false;
    const here = { inFlight: (this.#loads.get(lease.id)?.inFlight ?? 1) - 1 };
    const others = [...this.#entries.values()].filter(({ id, record }) => isUp(record) && id !== lease.id && !lease.left.includes(id));
    const { routing = defaultRouting } = this.#options;
    return others.some(({ id }) => isFarBusier(here, { inFlight: this.#loads.get(id)?.inFlight ?? 0 }, routing));
  }

  /**
   * Another place for a lease, which it takes over. After a failed call: another backend where one is up, the same while it is
   * there, else whichever comes; one that was only busy is left alone for a while and kept. For another reason: the best
   * place now, which may be where it is.
   */
  async reacquire(lease: Lease, { signal, tokens, reason }: ReacquireOptions): Promise<Lease> {
    if (!(lease instanceof PoolLease)) throw new RolloutError('internal', 'the lease is of another pool');
    const size = tokens === undefined ? {} : { tokens };
    if (reason !== 'failed' && lease.backend) return await this.#improve(lease, { ...size, isSticky: reason === 'busy' }, signal);
    if (lease.last.outcome === 'busy' && lease.backend) {
      await this.#leaveAlone(lease, signal);
      if (lease.backend && lease.busyCalls < 2) return lease;
    }
    const id = await this.#place(lease, { ...size, exclude: [lease.id] });
    if (id === undefined && lease.backend) return lease;
    return await this.#move(lease, { id, left: lease.left, signal });
  }

  /** Rollouts of this worker on each backend that is in the pool. */
  inFlight(): Record<string, number> {
    return Object.fromEntries(Array.from(this.#entries.values(), ({ id, held }) => [id, held]));
  }

  /** Calls of this worker that each backend is answering. */
  calls(): Record<string, number> {
    return Object.fromEntries(Array.from(this.#entries.values(), ({ id, calls }) => [id, calls]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new RolloutError('not-running', 'the pool of backends is closed'));
    await this.#health?.[Symbol.asyncDispose]();
    await this.#agent.destroy();
  }

  /** The promise is taken before the question, so that no backend that comes in between is missed. */
  async #wait(who: AcquireOptions, options: PlaceOptions): Promise<Lease> {
    const signal = AbortSignal.any([who.signal, this.#closed.signal]);
    for (;;) {
      signal.throwIfAborted();
      const { promise } = this.#someUp;
      const placed = this.#place(who, options);
      const id = placed instanceof Promise ? await placed : placed;
      // The store may know a backend of which no event has come yet, or still know one that has left.
      const entry = id === undefined ? undefined : this.#entries.get(id);
      signal.throwIfAborted();
      if (entry) return this.#lease({ entry, ...who });
      await raceSignal(promise, signal);
    }
  }

  /** At once where this pool decides alone: who is placed must count before the next one is. */
  #place({ rollout }: { readonly rollout?: Placed | undefined }, options: PlaceOptions): MaybeSoon<BackendId | undefined> {
    const { placements, routing } = this.#options;
    if (placements && rollout) return placements.place(rollout, { ...options, ...(routing ? { routing } : {}) });
    const up = [...this.#entries.values()].filter(({ record }) => isUp(record));
    const candidates = up.map(({ id, held }) => ({ id, inFlight: held, tokens: 0, siblings: 0 }));
    return chooseBackend(candidates, options)?.id;
  }

  /** The store decides with the counts of that moment; where the lease stays, it does not ask again for some turns. */
  async #improve(lease: PoolLease, options: PlaceOptions & { readonly isSticky: boolean }, signal: AbortSignal): Promise<Lease> {
    const { isSticky } = options;
    lease.turns = 0;
    const id = await this.#place(lease, { ...options, exclude: isSticky ? lease.left : [] });
    if (id === undefined || id === lease.id) return lease;
    return await this.#move(lease, { id, left: isSticky ? [...lease.left, lease.id] : [], signal });
  }

  /** To where it was placed, or to whichever comes where that is nowhere yet. */
  async #move(lease: PoolLease, to: Move): Promise<Lease> {
    const entry = to.id === undefined ? undefined : this.#entries.get(to.id);
    const who = { left: to.left, ...(lease.rollout ? { rollout: lease.rollout } : {}) };
    const next = entry && this.#lease({ entry, ...who });
    lease[Symbol.dispose]();
    return next ?? (await this.#wait({ signal: to.signal, ...who }, {}));
  }

  async #leaveAlone({ last, busyCalls }: PoolLease, signal: AbortSignal): Promise<void> {
    const ms = Math.min(last.retryAfterMs ?? busyMs * 2 ** (busyCalls - 1), longestBusyMs);
    await sleep(ms, { clock: this.#clock, signal: AbortSignal.any([signal, this.#closed.signal]) });
  }

  #lease(place: { readonly entry: Entry; readonly rollout?: Placed; readonly left?: readonly BackendId[] }): PoolLease {
    const deps = { clock: this.#clock, traffic: this.traffic, health: this.#health, onEnd: (lease: PoolLease) => this.#end(lease) };
    return new PoolLease(place, deps);
  }

  #end({ entry, rollout }: PoolLease): void {
    const { hasLeft, record } = entry;
    if (rollout && !hasLeft && !record.health?.brokenAtMs && !this.#closed.signal.aborted) this.#sessionEnds.tell(record, rollout.id);
  }

  #openHealth(placements: Placements): HealthWatch {
    const known = (id: BackendId): Entry => {
      const entry = this.#entries.get(id);
      if (!entry) throw new RolloutError('backend-failed', `${id} has left the pool`);
      return entry;
    };
    const common = { clock: this.#clock, dispatcher: this.#agent };
    return new HealthWatch({
      placements,
      checkHealth: async (id, { signal }) => await checkHealth(known(id).record, { ...common, signal }),
      tryOut: async (id, { signal }) => await tryOut(known(id).backend, { ...common, signal }),
      breakAfter: this.#options.breakAfter ?? 5,
      clock: this.#clock,
      ...(this.#options.log ? { log: this.#options.log } : {}),
    });
  }
}

function isUp({ state, health }: BackendRecord): boolean {
  return state === 'up' && health?.brokenAtMs === undefined;
}

/** Whether what it is called by is the same. */
function isSame(a: BackendRecord, b: BackendRecord): boolean {
  return (
    a.url === b.url &&
    a.dialect === b.dialect &&
    a.model === b.model &&
    a.apiKey === b.apiKey &&
    a.policyVersion === b.policyVersion &&
    a.logprobsMode === b.logprobsMode
  );
}
