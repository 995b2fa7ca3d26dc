// What the checkpoints of a process may cost: few at a time, and a small share of one core. When that is spent, turns go unsaved until there
// is room again, so a full machine loses a little more at a death instead of turning slower.

import type { Clock } from '@millrace/base/clock';
import { Slots } from '@millrace/base/slots';

/** How many checkpoints a process takes at the same time: what they take of its memory. */
const slotCount = 4;
/** Checkpoints take at most one part in this many of one core. */
const cpuShare = 20;
/** What may be spent at once after a calm time, as CPU time. */
const burstMs = 500;

export class CheckpointBudget {
  readonly slots = new Slots(slotCount);
  readonly #clock: Clock;
  #paidUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether another checkpoint may be taken now. */
  get hasRoom(): boolean {
    return this.#clock.monotonic() >= this.#paidUntilMs;
  }

  spend(cpuMs: number): void {
    const saved = this.#clock.monotonic() - burstMs * cpuShare;
    this.#paidUntilMs = Math.max(this.#paidUntilMs, saved) + cpuMs * cpuShare;
  }
}
