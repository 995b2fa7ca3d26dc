// What the checkpoints of a process may cost: few at a time, a small share of the time of each sandbox, and a small share of one core for all.
// When that is spent, turns go unsaved until there is room again, so a full machine loses a little more at a death instead of turning slower.

import type { Clock } from '@millrace/base/clock';
import { Slots } from '@millrace/base/slots';

/** How many checkpoints a process takes at the same time: what they take of its memory. */
const slotCount = 4;
/** This process spends about as much on a checkpoint as the sandbox. */
const bothSides = 2;
/** What may be spent at once after a calm time, as CPU time. */
const burstMs = 500;

interface CheckpointShares {
  /** Checkpoints of one sandbox take at most this share of its time, as CPU time. */
  readonly ofSandbox?: number;
  /** Those of all take at most this share of one core. */
  readonly ofCore?: number;
}

export class CheckpointBudget {
  readonly slots = new Slots(slotCount);
  readonly #clock: Clock;
  readonly #ofSandbox: number;
  readonly #ofCore: number;
  #paidUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, { ofSandbox = 1 / 200, ofCore = 1 / 20 }: CheckpointShares = {}) {
    this.#clock = clock;
    this.#ofSandbox = ofSandbox;
    this.#ofCore = ofCore;
  }

  /** Whether another checkpoint may be taken now. */
  get hasRoom(): boolean {
    return this.#clock.monotonic() >= this.#paidUntilMs;
  }

  /** After a checkpoint that took this much CPU time of its sandbox: how long after its start the sandbox is due again. */
  spend(sandboxCpuMs: number): number {
    const cpuMs = bothSides * sandboxCpuMs;
    const calmMs = this.#clock.monotonic() - burstMs / this.#ofCore;
    this.#paidUntilMs = Math.max(this.#paidUntilMs, calmMs) + cpuMs / this.#ofCore;
    return cpuMs / this.#ofSandbox;
  }
}
