// What controls of verifiers showed, for a while, so that a broken verifier is not tried again for each of its rollouts.

import type { Clock } from '@millrace/base/clock';

/** A verifier that works is likely to do so for a while; one that is broken may be repaired at any time. */
const [worksMs, brokenMs] = [600_000, 30_000];
const maxEntries = 1000;

export class ControlResults {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { readonly works: boolean; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(key: string): boolean | undefined {
    const entry = this.#entries.get(key);
    return entry && entry.untilMs > this.#clock.monotonic() ? entry.works : undefined;
  }

  set(key: string, works: boolean): void {
    if (this.#entries.size >= maxEntries) this.#entries.clear();
    this.#entries.set(key, { works, untilMs: this.#clock.monotonic() + (works ? worksMs : brokenMs) });
  }
}
