// One stage: a queue and its slots. There are three of them, for init, run and evaluate; they share nothing, so a slow stage never
// holds another's slot.

import { type Clock, systemClock } from '@millrace/base/clock';
import { raceSignal } from '@millrace/base/race';
import { Slots } from '@millrace/base/slots';
import type { StageName, StageReport } from '@millrace/protocol';
import type { PipelineConfig } from './pipeline-config.ts';

export class Stage {
  readonly name: StageName;
  readonly #slots: Slots;
  readonly #clock: Clock;

  /** `onFree` is called when a slot becomes free and nothing waits for it. */
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
   * Waits for a slot, then runs `work` with the time that it waited. Rejects at once on an abort, even if `work` ignores the
   * signal: what it does after that has no effect.
   */
  async run<T>(work: (waitedMs: number) => Promise<T>, options: { readonly signal: AbortSignal }): Promise<T> {
    const arrivedAt = this.#clock.monotonic();
    using _slot = await this.#slots.acquire(options);
    return await raceSignal(work(this.#clock.monotonic() - arrivedAt), options.signal);
  }
}

export function openStages(
  config: PipelineConfig,
  { clock, onInitFree }: { clock: Clock; onInitFree: () => void },
): Record<StageName, Stage> {
  return {
    init: new Stage('init', config.initSlots, { clock, onFree: onInitFree }),
    run: new Stage('run', config.runSlots, { clock }),
    evaluate: new Stage('evaluate', config.evaluateSlots, { clock }),
  };
}
