// Tokens per second over about the last ten seconds, from a counter that only grows.

import type { Clock } from '@millrace/base/clock';

const windowMs = 10_000;

export class TokenRate {
  readonly #clock: Clock;
  /** Readings of the counter, oldest first: those inside the window, and the newest one before it. */
  #readings: { readonly at: number; readonly total: number }[];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#readings = [{ at: clock.monotonic(), total: 0 }];
  }

  /** `total` is the counter now. Rounded to tenths. */
  read(total: number): number {
    const at = this.#clock.monotonic();
    const start = this.#readings.findLastIndex((reading) => at - reading.at >= windowMs);
    this.#readings = [...this.#readings.slice(Math.max(0, start)), { at, total }];
    const [oldest] = this.#readings;
    return oldest && at > oldest.at ? Math.round((10_000 * (total - oldest.total)) / (at - oldest.at)) / 10 : 0;
  }
}
