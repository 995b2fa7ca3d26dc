// Which backends work, judged from the calls that rollouts make. Several failures in a row break a backend for this machine, and for all
// if others agree; a broken one is probed until it recovers. A busy or slow backend is not broken.

import { type Clock, sleep } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import type { BackendProbe, BackendRecord } from '@millrace/engines';
import { type BackendId, messageOf, RolloutError } from '@millrace/protocol';
import { findFault, type Placements } from '@millrace/store';

/**
 * - answered: the server works, even if it refused or aborted the request
 * - busy: it asks to be left alone for a while
 * - silent: it sent nothing for long, because its queue is full or its engine is dead
 * - failed: it cannot be reached, it broke down, or its reply is unusable
 */
export type Outcome = 'answered' | 'busy' | 'silent' | 'failed';

export function judgeFailure(error: RolloutError): Outcome {
  if (error.code === 'backend-refused') return 'answered';
  switch (error.details?.reason) {
    case 'aborted':
    case 'changed':
      return 'answered';
    case 'busy':
      return 'busy';
    case 'silence':
      return 'silent';
    default:
      return 'failed';
  }
}

interface HealthOptions {
  readonly placements: Omit<Placements, 'place'>;
  /** Throws if the server does not report itself healthy. */
  checkHealth(id: BackendId, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Waits while the policy is paused. */
  waitForPolicy(options: { readonly signal: AbortSignal }): Promise<void>;
  /** Throws if it does not generate. */
  tryOut(id: BackendId, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Reads what its server says about itself. */
  describe(id: BackendId, options: { readonly signal: AbortSignal }): Promise<BackendProbe>;
  /** How many failed calls in a row break a backend. */
  readonly breakAfter: number;
  /** The host name of this machine. */
  readonly machine?: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** The pause after an operation of the store failed. */
const pauseMs = 1000;

type TaskKind = 'check' | 'recover';

interface HealthTask {
  readonly id: BackendId;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
  /** It was asked for again while it ran. */
  isAskedAgain: boolean;
}

export class HealthMonitor implements AsyncDisposable {
  readonly #options: HealthOptions;
  /** Failed calls in a row. */
  readonly #failures = new Map<BackendId, number>();
  readonly #tasks = new Map<string, HealthTask>();

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** Call it once for every call that ended. */
  report(id: BackendId, outcome: Outcome, error?: RolloutError): void {
    if (outcome === 'answered') this.#failures.delete(id);
    // A full queue and a proxy whose server is gone both answer 503; only the first is healthy.
    if (outcome === 'silent' || (outcome === 'busy' && error?.details?.status === 503)) this.#startTask('check', id);
    if (outcome !== 'failed') return;
    const failures = (this.#failures.get(id) ?? 0) + 1;
    this.#failures.set(id, failures);
    if (failures < this.#options.breakAfter) return;
    this.#failures.delete(id);
    this.#break(id, error).catch((failure) => this.#logFailure(id, failure));
  }

  /** Every worker watches every broken backend; the store lets one of them probe at a time. */
  update(records: readonly BackendRecord[]): void {
    const known = new Set(records.map(({ id }) => id));
    for (const { id, abort } of this.#tasks.values()) if (!known.has(id)) abort.abort();
    for (const id of this.#failures.keys()) if (!known.has(id)) this.#failures.delete(id);
    for (const { id, health } of records) if (health?.brokenAtMs !== undefined) this.#startTask('recover', id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const tasks = [...this.#tasks.values()];
    for (const { abort } of tasks) abort.abort();
    await Promise.all(tasks.map(({ ended }) => ended));
  }

  /** Runs one task of a kind at a time for a backend. A recovery that is asked for while one runs starts again after it. */
  #startTask(kind: TaskKind, id: BackendId): void {
    const key = `${kind} ${id}`;
    const running = this.#tasks.get(key);
    if (running) {
      running.isAskedAgain = true;
      return;
    }
    const abort = new AbortController();
    const work = kind === 'recover' ? this.#recover(id, abort.signal) : this.#checkHealth(id, abort.signal);
    const ended = work
      .catch((error) => {
        if (!abort.signal.aborted) this.#logFailure(id, error);
      })
      .finally(() => {
        this.#tasks.delete(key);
        if (task.isAskedAgain && kind === 'recover' && !abort.signal.aborted) this.#startTask(kind, id);
      });
    const task: HealthTask = { id, abort, ended, isAskedAgain: false };
    this.#tasks.set(key, task);
  }

  #break(id: BackendId, error: unknown): Promise<void> {
    const { placements, machine } = this.#options;
    return placements.breakBackend(id, { error: describe(error), machine });
  }

  #logFailure(id: BackendId, error: unknown): void {
    this.#options.log.error('backend-health-failed', { backend: id, error: describe(error) });
  }

  async #checkHealth(id: BackendId, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.checkHealth(id, { signal });
    } catch (error) {
      signal.throwIfAborted();
      await this.#break(id, error);
    }
  }

  /** Probes whenever it is this worker's turn and the policy is not paused, until the backend works or another worker has found that it does. */
  async #recover(id: BackendId, signal: AbortSignal): Promise<void> {
    const { placements, clock, machine } = this.#options;
    for (;;) {
      await this.#options.waitForPolicy({ signal });
      const waitMs = await placements.takeProbe(id, { machine }).catch((error) => {
        this.#logFailure(id, error);
        return pauseMs;
      });
      if (waitMs === undefined) return;
      if (waitMs > 0) await sleep(waitMs, { clock, signal });
      else if (await this.#probe(id, signal)) return;
    }
  }

  async #probe(id: BackendId, signal: AbortSignal): Promise<boolean> {
    const { placements, checkHealth, tryOut, machine } = this.#options;
    try {
      await checkHealth(id, { signal });
      await tryOut(id, { signal });
      const found = await this.#describe(id, signal);
      const fault = found && findFault(found);
      if (fault !== undefined) throw new RolloutError('backend-failed', fault);
    } catch (error) {
      signal.throwIfAborted();
      await placements.breakBackend(id, { error: describe(error), isProbe: true, machine });
      return false;
    }
    await placements.recoverBackend(id, { machine });
    return true;
  }

  /** The server may have been down when it joined, or may have been restarted with another model or flags. It works even if this fails. */
  async #describe(id: BackendId, signal: AbortSignal): Promise<BackendProbe | undefined> {
    try {
      const found = await this.#options.describe(id, { signal });
      return await this.#options.placements.noteProbe(id, found);
    } catch (error) {
      signal.throwIfAborted();
      this.#logFailure(id, error);
      return undefined;
    }
  }
}

function describe(error: unknown): string {
  return messageOf(error).slice(0, 500);
}
