// A worker's gate before the backends: every call passes it, and none while the policy is paused. It knows what is under way, so
// that a worker can say when nothing of it is sampled any more; until it is told of the policy for the first time it is closed.

import type { PauseMode, PolicyState } from '@millrace/protocol';
import { raceSignal } from '../base/race.ts';

/** The policy as the store keeps it and the gate is told of it. */
export interface PolicyRecord {
  readonly state: PolicyState;
  /** Of the pause under way. */
  readonly mode?: PauseMode;
  /** Counts the pauses: the number of the newest. */
  readonly pause: number;
  /** Counts the resumes after which no backend has a prefix cached. */
  readonly flushes: number;
  readonly policyVersion: number;
  /** Calls under way over all workers, as they last said. */
  readonly generating: number;
  readonly sinceMs: number;
}

/** The right to make one call. Disposing says that it is over; twice is once. */
export interface Pass extends Disposable {
  /** Aborted when a pause is not to wait for the call. */
  readonly cut: AbortSignal;
  readonly flushes: number;
}

export interface GateOptions {
  /** Called when the gate is closed and the last call is over, and at every pause that finds none under way. */
  readonly onStill?: () => void;
}

type Told = Pick<PolicyRecord, 'state' | 'mode' | 'pause' | 'flushes' | 'policyVersion'>;

const nothingTold: Told = { state: 'paused', pause: 0, flushes: 0, policyVersion: 0 };

export class PolicyGate {
  readonly #passes = new Set<AbortController>();
  readonly #onStill: () => void;
  #told: Told = nothingTold;
  #opened = Promise.withResolvers<void>();

  constructor({ onStill = () => {} }: GateOptions = {}) {
    this.#onStill = onStill;
  }

  /** The newest pause heard of, and the calls under way: with 0 of them and the gate closed, none will begin before a resume. */
  get report(): { readonly pause: number; readonly generating: number } {
    return { pause: this.#told.pause, generating: this.#passes.size };
  }

  /** The newest weights that a resume or a backend has named. */
  get policyVersion(): number {
    return this.#told.policyVersion;
  }

  get isOpen(): boolean {
    return this.#told.state === 'running';
  }

  tell(policy: Told): void {
    this.#told = policy;
    if (this.isOpen) {
      this.#opened.resolve();
      this.#opened = Promise.withResolvers();
      return;
    }
    if (policy.mode === 'abort') for (const pass of this.#passes) pass.abort();
    this.#tellStill();
  }

  /** Waits while the policy is paused; rejects with the signal's reason when it aborts first. */
  async opened({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    while (!this.isOpen) await raceSignal(this.#opened.promise, signal);
    signal.throwIfAborted();
  }

  /** The right to make one call; absent while the gate is closed. */
  enter(): Pass | undefined {
    if (!this.isOpen) return undefined;
    const controller = new AbortController();
    this.#passes.add(controller);
    const { flushes } = this.#told;
    const leave = () => {
      if (this.#passes.delete(controller)) this.#tellStill();
    };
    return { cut: controller.signal, flushes, [Symbol.dispose]: leave };
  }

  #tellStill(): void {
    if (!this.isOpen && this.#passes.size === 0) this.#onStill();
  }
}
