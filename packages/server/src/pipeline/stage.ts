// One stage: a waiting line and its slots. Used three times, for init, run and evaluate; they share nothing, so a slow one
// never holds another's slot.

import type { StageName, StageReport } from '@millrace/protocol';
import { type Clock, systemClock } from '../base/clock.ts';
import { raceSignal } from '../base/race.ts';
import { Slots } from '../base/slots.ts';

export class Stage {
  readonly name: StageName;
  readonly #slots: Slots;
  readonly #clock: Clock;

  /** `onFree` is called whenever a slot became free and nobody stood in line for it. */
  constructor(name: StageName, slots: number, options: { readonly clock?: Clock; onFree?(): void } = {}) {
    this.name = name;
    this.#slots = new Slots(slots, options.onFree);
    this.#clock = options.clock ?? systemClock;
  }

  get report(): StageReport {
    return { active: this.#slots.active, waiting: this.#slots.waiting, slots: this.#slots.count };
  }

  get free(): number {
    return this.#slots.free;
  }

  /**
   * Waits for a slot, then runs `work`, which is told how long it stood in line. Ends within moments of an abort even when
   * `work` does not listen: what it still does after that is nobody's concern.
   */
  async run<T>(work: (waitedMs: number) => Promise<T>, options: { readonly signal: AbortSignal }): Promise<T> {
    const arrivedAt = this.#clock.monotonic();
    using _slot = await this.#slots.acquire(options);
    return await raceSignal(work(this.#clock.monotonic() - arrivedAt), options.signal);
  }
}
