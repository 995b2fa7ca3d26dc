// A deadline whose clock stops during `uncharged` waits.

import type { Clock } from './clock.ts';

/** The reason with which a deadline's signal aborts. */
export class Expired extends Error {
  constructor(what: string, ms: number) {
    super(`${what} took longer than its ${ms / 1000} s`);
    this.name = 'Expired';
  }
}

/** Stops the clock of the caller while it waits. */
export type Uncharged = <T>(wait: () => Promise<T>) => Promise<T>;

export class Deadline implements Disposable {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #what: string;
  readonly #ms: number;
  #chargedMs = 0;
  #startedAt: number;
  #waits = 0;
  #isOver = false;
  #stop: () => void;

  constructor(what: string, ms: number, clock: Clock) {
    this.#clock = clock;
    this.#what = what;
    this.#ms = ms;
    this.#startedAt = clock.monotonic();
    this.#stop = this.#arm();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The time charged so far. */
  get chargedMs(): number {
    return this.#chargedMs + (this.#waits > 0 ? 0 : this.#clock.monotonic() - this.#startedAt);
  }

  /** Stops the clock while `wait` is pending; waits may overlap. */
  async uncharged<T>(wait: () => Promise<T>): Promise<T> {
    if (this.#waits++ === 0) this.#pause();
    try {
      return await wait();
    } finally {
      if (--this.#waits === 0) this.#resume();
    }
  }

  /** Gives back time that was charged but turned out to be someone else's. Has no effect once the deadline has expired. */
  refund(ms: number): void {
    if (this.#waits === 0) this.#pause();
    this.#chargedMs -= ms;
    if (this.#waits === 0) this.#resume();
  }

  /** A wait that ends later does not start the clock again. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#stop();
  }

  #pause(): void {
    this.#stop();
    this.#chargedMs += this.#clock.monotonic() - this.#startedAt;
  }

  #resume(): void {
    this.#startedAt = this.#clock.monotonic();
    if (!this.signal.aborted && !this.#isOver) this.#stop = this.#arm();
  }

  #arm(): () => void {
    const leftMs = Math.max(0, this.#ms - this.#chargedMs);
    return this.#clock.after(leftMs, () => this.#controller.abort(new Expired(this.#what, this.#ms)));
  }
}
