// The pool of backends: who is there now, and how many rollouts each carries. A rollout holds one lease for its life and is
// moved only when its backend fails or has left; nothing here polls.

import type { BackendId } from '@millrace/protocol';
import { RolloutError } from '@millrace/protocol';
import { Agent } from 'undici';
import type { Log } from '../base/log.ts';
import type { Pace } from '../base/pace.ts';
import { raceSignal } from '../base/race.ts';
import type { Backend, BackendRecord } from './backend.ts';
import { openBackend } from './open-backend.ts';
import { chooseBackend } from './routing.ts';

/** A rollout's place on a backend. Disposing gives it back; twice is once. */
export interface Lease extends Disposable {
  readonly id: BackendId;
  /** As the record says now, with its present policy version; absent when the backend has left the pool. */
  readonly backend: Backend | undefined;
}

export interface PoolOptions {
  readonly log?: Log;
  readonly pace?: Pace;
  /** A backend from which nothing at all came for so long has failed its call. */
  readonly stallMs?: number;
  /** How a record becomes a backend; by its dialect, over the pool's own connections, where it is absent. */
  readonly open?: (record: BackendRecord) => Backend;
}

interface Entry {
  readonly id: BackendId;
  record: BackendRecord;
  backend: Backend;
  inFlight: number;
}

export class BackendPool implements AsyncDisposable {
  readonly #entries = new Map<BackendId, Entry>();
  readonly #agent = new Agent();
  readonly #open: (record: BackendRecord) => Backend;
  readonly #closed = new AbortController();
  #someUp = Promise.withResolvers<void>();

  constructor({ open, ...options }: PoolOptions = {}) {
    this.#open = open ?? ((record) => openBackend(record, { dispatcher: this.#agent, ...options }));
  }

  /** The records are all there are: others leave. Those that stay keep their rollouts and connections. */
  update(records: readonly BackendRecord[]): void {
    const present = new Set(records.map(({ id }) => id));
    for (const id of this.#entries.keys()) if (!present.has(id)) this.#entries.delete(id);
    for (const record of records) {
      const entry = this.#entries.get(record.id);
      if (!entry) {
        this.#entries.set(record.id, { id: record.id, record, backend: this.#open(record), inFlight: 0 });
      } else if (!isSame(entry.record, record)) {
        entry.record = record;
        entry.backend = this.#open(record);
      }
    }
    if (records.some(({ state }) => state === 'up')) {
      this.#someUp.resolve();
      this.#someUp = Promise.withResolvers();
    }
  }

  /** Waits, first come first served, while no backend is up. */
  async acquire({ signal }: { readonly signal: AbortSignal }): Promise<Lease> {
    for (;;) {
      signal.throwIfAborted();
      this.#closed.signal.throwIfAborted();
      const entry = chooseBackend(this.#up());
      if (entry) return this.#lease(entry);
      await raceSignal(this.#someUp.promise, AbortSignal.any([signal, this.#closed.signal]));
    }
  }

  /** After a failure: another backend where one is up, the same while it is there, else whichever comes. Takes the lease over. */
  async reacquire(lease: Lease, options: { readonly signal: AbortSignal }): Promise<Lease> {
    const other = chooseBackend(this.#up(), lease.id);
    if (!other && lease.backend) return lease;
    lease[Symbol.dispose]();
    return other ? this.#lease(other) : await this.acquire(options);
  }

  /** Rollouts on each backend that is in the pool. */
  inFlight(): Record<string, number> {
    return Object.fromEntries(Array.from(this.#entries.values(), ({ id, inFlight }) => [id, inFlight]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new RolloutError('not-running', 'the pool of backends is closed'));
    await this.#agent.destroy();
  }

  #up(): Entry[] {
    return [...this.#entries.values()].filter(({ record }) => record.state === 'up');
  }

  #lease(entry: Entry): Lease {
    const entries = this.#entries;
    let held = true;
    entry.inFlight += 1;
    return {
      id: entry.id,
      get backend() {
        return entries.get(entry.id) === entry ? entry.backend : undefined;
      },
      [Symbol.dispose]() {
        if (held) entry.inFlight -= 1;
        held = false;
      },
    };
  }
}

function isSame(a: BackendRecord, b: BackendRecord): boolean {
  return (
    a.url === b.url &&
    a.dialect === b.dialect &&
    a.model === b.model &&
    a.apiKey === b.apiKey &&
    a.policyVersion === b.policyVersion &&
    a.logprobsMode === b.logprobsMode &&
    a.state === b.state
  );
}
