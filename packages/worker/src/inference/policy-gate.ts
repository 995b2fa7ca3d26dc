// A worker's gate in front of the backends: every call passes it, and none does while the policy is paused. It counts the calls in
// flight, so that a worker can report when it samples nothing. It is closed until it has read the policy for the first time.

import { raceSignal } from '@millrace/base/race';
import { definedOf } from '@millrace/protocol';
import type { PolicyRecord } from '@millrace/store';

/** The part of the policy that a gate acts on. */
export type GatePolicy = Pick<PolicyRecord, 'state' | 'mode' | 'pause' | 'flushes' | 'policyVersion' | 'adapter' | 'cacheSalt'>;

/** What a worker reports about its gate. With `generating` at 0 and the gate closed, no call starts before a resume. */
interface GateReport {
  /** The newest pause that the gate knows. */
  readonly pause: number;
  /** Calls in flight. */
  readonly generating: number;
}

/** The right to make one call. Dispose it when the call is over; disposing twice has no further effect. */
export interface Pass extends Disposable, Pick<PolicyRecord, 'adapter' | 'cacheSalt'> {
  /** Aborted when a pause cuts the call instead of waiting for it. */
  readonly cut: AbortSignal;
  readonly flushes: number;
}

interface GateOptions {
  /** Called when the last call ends while the gate is closed, and at every pause that finds no call in flight. */
  readonly onIdle?: () => void;
}

const unknownPolicy: GatePolicy = { state: 'paused', pause: 0, flushes: 0, policyVersion: 0 };

export class PolicyGate {
  readonly #passes = new Set<AbortController>();
  readonly #onIdle: () => void;
  #policy = unknownPolicy;
  #opened = Promise.withResolvers<void>();

  constructor({ onIdle = () => {} }: GateOptions = {}) {
    this.#onIdle = onIdle;
  }

  get report(): GateReport {
    return { pause: this.#policy.pause, generating: this.#passes.size };
  }

  /** The newest weights that a resume or a backend has named. */
  get policyVersion(): number {
    return this.#policy.policyVersion;
  }

  get isOpen(): boolean {
    return this.#policy.state === 'running';
  }

  update(policy: GatePolicy): void {
    this.#policy = policy;
    if (this.isOpen) {
      this.#opened.resolve();
      this.#opened = Promise.withResolvers();
      return;
    }
    if (policy.mode === 'abort') for (const pass of this.#passes) pass.abort();
    this.#notifyIdle();
  }

  /** Waits while the policy is paused; rejects with the signal's reason if it aborts first. */
  async opened({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    while (!this.isOpen) await raceSignal(this.#opened.promise, signal);
    signal.throwIfAborted();
  }

  /** Waits for the gate to open, and enters it. */
  async pass(options: { readonly signal: AbortSignal }): Promise<Pass> {
    for (;;) {
      await this.opened(options);
      const pass = this.enter();
      if (pass) return pass;
    }
  }

  /** Undefined while the gate is closed. */
  enter(): Pass | undefined {
    if (!this.isOpen) return undefined;
    const controller = new AbortController();
    this.#passes.add(controller);
    const { flushes, adapter, cacheSalt } = this.#policy;
    const leave = () => {
      if (this.#passes.delete(controller)) this.#notifyIdle();
    };
    return { cut: controller.signal, flushes, ...definedOf({ adapter, cacheSalt }), [Symbol.dispose]: leave };
  }

  #notifyIdle(): void {
    if (!this.isOpen && this.#passes.size === 0) this.#onIdle();
  }
}
