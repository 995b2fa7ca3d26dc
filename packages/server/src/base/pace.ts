// Takes a burst apart: those who ask at once go on one after the other, a few milliseconds' worth in each turn of the event
// loop, so that hundreds of answers which arrive together do not hold up timers and sockets.

import { type Clock, systemClock } from './clock.ts';

/** Work in steps of about a millisecond. A step that has to wait for something yields its promise. */
export type Steps<T> = Generator<undefined | Promise<unknown>, T, void>;

/** Waits inside of steps. */
export function* awaitStep<T>(promise: Promise<T>): Steps<T> {
  let settled: PromiseSettledResult<T> | undefined;
  yield Promise.allSettled([promise]).then(([result]) => {
    settled = result;
  });
  if (settled?.status === 'fulfilled') return settled.value;
  throw settled ? settled.reason : new Error('steps that wait must be run by a Pace');
}

const sliceMs = 5;

export class Pace {
  readonly #clock: Clock;
  readonly #line: (() => void)[] = [];

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Resolves when it is one's turn; first come, first served. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#line.push(resolve) === 1) this.#serveSlice();
    });
  }

  /** Runs work that comes in steps, and steps back into the line whenever it has had its slice. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      await this.turn();
      const startedAt = this.#clock.monotonic();
      do {
        const { done, value } = steps.next();
        if (done) return value;
        if (value) {
          await value;
          break;
        }
      } while (this.#clock.monotonic() - startedAt < sliceMs);
    }
  }

  #serveSlice(): void {
    setImmediate(() => {
      const startedAt = this.#clock.monotonic();
      const serve = () => {
        this.#line.shift()?.();
        // A tick asked for by a microtask comes after everything that the one just called does without waiting.
        queueMicrotask(() => process.nextTick(next));
      };
      const next = () => {
        if (this.#line.length === 0) return;
        if (this.#clock.monotonic() - startedAt < sliceMs) serve();
        else this.#serveSlice();
      };
      serve();
    });
  }
}
