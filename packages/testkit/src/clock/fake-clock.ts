// A clock that tests control: time passes only when they advance it.

import type { Clock } from '@millrace/base/clock';

export class FakeClock implements Clock {
  /** The date when `monotonic` was 0; a step changes it. */
  #originMs: number;
  #monotonicMs = 0;
  readonly #timers = new Map<number, { readonly at: number; readonly callback: () => void }>();
  #next = 0;

  constructor(startMs = 1_700_000_000_000) {
    this.#originMs = startMs;
  }

  now(): number {
    return this.#originMs + this.#monotonicMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  after(ms: number, callback: () => void): () => void {
    const key = this.#next++;
    this.#timers.set(key, { at: this.#monotonicMs + ms, callback });
    return () => void this.#timers.delete(key);
  }

  /** How many timers have not fired. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Sets the date forward, or back, as an administrator or a time server would. No time passes. */
  step(ms: number): void {
    this.#originMs += ms;
  }

  /** Advances the time; timers that fall due fire in order, each at its own time. */
  advance(ms: number): void {
    const end = this.#monotonicMs + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, timer]) => timer.at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.#timers.delete(due[0]);
      this.#monotonicMs = Math.max(this.#monotonicMs, due[1].at);
      due[1].callback();
    }
    this.#monotonicMs = end;
  }
}
