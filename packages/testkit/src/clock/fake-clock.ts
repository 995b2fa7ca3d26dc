// A clock that tests control: time passes only when they advance it.

import type { Clock } from '@millrace/server';

export class FakeClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;
  readonly #timers = new Map<number, { readonly at: number; readonly callback: () => void }>();
  #next = 0;

  constructor(startMs = 1_700_000_000_000) {
    this.#nowMs = startMs;
    this.#startMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs;
  }

  after(ms: number, callback: () => void): () => void {
    const key = this.#next++;
    this.#timers.set(key, { at: this.#nowMs + ms, callback });
    return () => void this.#timers.delete(key);
  }

  /** Advances the time; timers that fall due fire in order, each at its own time. */
  advance(ms: number): void {
    const end = this.#nowMs + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, timer]) => timer.at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.#timers.delete(due[0]);
      this.#nowMs = Math.max(this.#nowMs, due[1].at);
      due[1].callback();
    }
    this.#nowMs = end;
  }
}
