// Which backends are well, from the calls that rollouts make: some failures in a row break one for all workers, and a broken
// one is probed until it answers again. One that is busy or slow is not broken.

import { type BackendId, messageOf, RolloutError } from '@millrace/protocol';
import { type Clock, sleep, systemClock } from '../../base/clock.ts';
import { type Log, silentLog } from '../../base/log.ts';
import type { BackendRecord } from '../backends/backend.ts';
import type { Placements } from './placements.ts';

/**
 * - answered: it works, also where it refused the request
 * - busy: it asks to be left alone for a while
 * - silent: nothing came for long, which a full queue does as well as a dead engine
 * - failed: it cannot be reached, it broke down, or its answer cannot be used
 */
export type Outcome = 'answered' | 'busy' | 'silent' | 'failed';

export function judgeFailure(error: unknown): Outcome {
  if (!(error instanceof RolloutError) || error.code === 'backend-refused') return 'answered';
  if (error.details?.reason === 'busy') return 'busy';
  return error.details?.reason === 'silence' ? 'silent' : 'failed';
}

export interface HealthOptions {
  readonly placements: Omit<Placements, 'place'>;
  /** Throws when the server does not say that it is well. */
  checkHealth(id: BackendId, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Throws when it does not generate. */
  tryOut(id: BackendId, options: { readonly signal: AbortSignal }): Promise<void>;
  /** So many failed calls in a row break a backend. */
  readonly breakAfter: number;
  readonly clock?: Clock;
  readonly log?: Log;
}

/** After a store that failed, the next try. */
const pauseMs = 1000;

export class HealthWatch implements AsyncDisposable {
  readonly #options: HealthOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #failures = new Map<BackendId, number>();
  readonly #cares = new Map<string, Care>();

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLog;
  }

  /** Told of every call's end. */
  hear(id: BackendId, outcome: Outcome, error?: unknown): void {
    if (outcome === 'answered') this.#failures.delete(id);
    if (outcome === 'silent') this.#care('suspect', id);
    if (outcome !== 'failed') return;
    const failures = (this.#failures.get(id) ?? 0) + 1;
    this.#failures.set(id, failures);
    if (failures < this.#options.breakAfter) return;
    this.#failures.delete(id);
    this.#break(id, error).catch((failure) => this.#tell(id, failure));
  }

  /** Each worker watches every broken backend, and the store lets one of them probe. */
  update(records: readonly BackendRecord[]): void {
    const known = new Set(records.map(({ id }) => id));
    for (const { id, abort } of this.#cares.values()) if (!known.has(id)) abort.abort();
    for (const id of this.#failures.keys()) if (!known.has(id)) this.#failures.delete(id);
    for (const { id, health } of records) if (health?.brokenAtMs !== undefined) this.#care('mend', id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const cares = [...this.#cares.values()];
    for (const { abort } of cares) abort.abort();
    await Promise.all(cares.map(({ ended }) => ended));
  }

  /** One of a kind at a time. What is asked for while it is under way is done after it: it may have ended by what is old by then. */
  #care(kind: 'suspect' | 'mend', id: BackendId): void {
    const key = `${kind} ${id}`;
    const known = this.#cares.get(key);
    if (known) {
      known.isAsked = true;
      return;
    }
    const abort = new AbortController();
    const work = kind === 'mend' ? this.#mend(id, abort.signal) : this.#suspect(id, abort.signal);
    const ended = work
      .catch((error) => {
        if (!abort.signal.aborted) this.#tell(id, error);
      })
      .finally(() => {
        this.#cares.delete(key);
        if (care.isAsked && kind === 'mend' && !abort.signal.aborted) this.#care(kind, id);
      });
    const care: Care = { id, abort, ended, isAsked: false };
    this.#cares.set(key, care);
  }

  #break(id: BackendId, error: unknown): Promise<void> {
    return this.#options.placements.breakBackend(id, { error: describe(error) });
  }

  #tell(id: BackendId, error: unknown): void {
    this.#log.error('backend-health-failed', { backend: id, error: describe(error) });
  }

  async #suspect(id: BackendId, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.checkHealth(id, { signal });
    } catch (error) {
      signal.throwIfAborted();
      await this.#break(id, error);
    }
  }

  async #mend(id: BackendId, signal: AbortSignal): Promise<void> {
    const { placements } = this.#options;
    for (;;) {
      const waitMs = await placements.takeProbe(id).catch((error) => {
        this.#tell(id, error);
        return pauseMs;
      });
      if (waitMs === undefined) return;
      if (waitMs > 0) await sleep(waitMs, { clock: this.#clock, signal });
      else if (await this.#probe(id, signal)) return;
    }
  }

  async #probe(id: BackendId, signal: AbortSignal): Promise<boolean> {
    const { placements, checkHealth, tryOut } = this.#options;
    try {
      await checkHealth(id, { signal });
      await tryOut(id, { signal });
    } catch (error) {
      signal.throwIfAborted();
      await placements.breakBackend(id, { error: describe(error), isProbe: true });
      return false;
    }
    await placements.recoverBackend(id);
    return true;
  }
}

interface Care {
  readonly id: BackendId;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
  isAsked: boolean;
}

function describe(error: unknown): string {
  return messageOf(error).slice(0, 500);
}
