// Spreads a burst of work over turns of the event loop: callers run one after another, a few milliseconds per turn, so that
// hundreds of replies that arrive together do not delay timers and sockets.

import { type Clock, systemClock } from './clock.ts';
import { type PacedStream, StreamBeat } from './stream-beat.ts';

/** Work in steps of about a millisecond. A step that must wait yields a promise. */
export type Steps<T> = Generator<undefined | Promise<unknown>, T, void>;

/** Awaits a promise within steps. */
export function* awaitStep<T>(promise: Promise<T>): Steps<T> {
  let settled: PromiseSettledResult<T> | undefined;
  yield Promise.allSettled([promise]).then(([result]) => {
    settled = result;
  });
  if (settled?.status === 'fulfilled') return settled.value;
  throw settled ? settled.reason : new Error('steps that wait must be run by a Pace');
}

/** Runs steps at once, where there are few. */
export function runNow<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (value) throw new Error('steps that wait must be run by a Pace');
  }
}

const sliceMs = 5;

export class Pace {
  readonly #clock: Clock;
  readonly #line: (() => void)[] = [];
  readonly #beat: StreamBeat;
  #isServing = false;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.#beat = new StreamBeat(clock, (steps) => this.run(steps));
  }

  /** For a stream that arrives in small pieces. `read` takes what has arrived, and never throws. */
  openStream(read: () => void): PacedStream {
    return this.#beat.open(read);
  }

  /** Resolves when it is the caller's turn; first come, first served. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#line.push(resolve);
      if (this.#isServing) return;
      this.#isServing = true;
      this.#serveSlice();
    });
  }

  /** Runs steps, and goes to the end of the line after each time slice. */
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
        // A tick scheduled by a microtask runs after all synchronous work of the caller just resumed.
        queueMicrotask(() => process.nextTick(next));
      };
      const next = () => {
        if (this.#line.length === 0) this.#isServing = false;
        else if (this.#clock.monotonic() - startedAt < sliceMs) serve();
        else this.#serveSlice();
      };
      serve();
    });
  }
}
