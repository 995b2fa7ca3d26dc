// A worker's view of the policy and its backends: read from the store in order, and the gate's state reported back.

import type { Log } from '@millrace/base/log';
import { messageOf, type WorkerId } from '@millrace/protocol';
import type { WorkerStore } from '@millrace/store';
import { PolicyGate } from '../inference/policy-gate.ts';
import type { BackendPool } from '../inference/pool/pool.ts';

interface FollowerDeps {
  readonly store: WorkerStore;
  readonly pool: BackendPool;
  readonly log: Log;
  /** The id under which the gate is reported. */
  worker(): WorkerId;
}

export class PolicyFollower {
  readonly gate = new PolicyGate({ onIdle: () => void this.report() });
  readonly #deps: FollowerDeps;
  #reading: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
  }

  /** Reads one after the other, so that an old state never overwrites a new one. */
  update(): void {
    this.#reading = this.#reading
      .then(() => this.read())
      .catch((error) => {
        this.#hasFailed = true;
        this.#deps.log.error('policy-read-failed', { error: messageOf(error) });
      });
  }

  /** Repeats a read that failed. */
  updateIfFailed(): void {
    if (this.#hasFailed) this.update();
  }

  /** A pause takes effect first; a resume takes effect only after the backends' new versions are known. */
  async read(): Promise<void> {
    const { store, pool } = this.#deps;
    this.#hasFailed = false;
    const policy = await store.policy();
    if (policy.state !== 'running') this.gate.update(policy);
    pool.update(await store.backends());
    if (policy.state === 'running') this.gate.update(policy);
  }

  /** A pause completes only when the store has this report. A report that fails is repeated with the next renewal. */
  async report(): Promise<void> {
    const { store, log, worker } = this.#deps;
    try {
      await store.reportGate(worker(), this.gate.report);
    } catch (error) {
      log.error('gate-report-failed', { error: messageOf(error) });
    }
  }
}
