// Streams that arrive in small pieces are read at once while they are few, and together on a common beat where they are many: a process reads
// about 500 pieces a second, however many streams there are and however small their pieces.

import type { Clock } from './clock.ts';

/** A stream whose pieces arrive one by one. Dispose it when it has ended. */
export interface PacedStream extends Disposable {
  /** Call it when a piece has arrived. The stream is read now, or soon, with all pieces that have arrived until then. */
  note(): void;
}

interface OpenStream {
  /** Never throws. */
  read(): void;
  readAtMs: number;
}

/** Between two readings of a stream, for each stream that is open. */
const msPerStream = 2;
/** However many there are, a reader sees its text grow. */
const longestMs = 250;

export class StreamBeat {
  readonly #clock: Clock;
  readonly #run: (steps: Generator<undefined, void, void>) => Promise<void>;
  readonly #open = new Set<OpenStream>();
  readonly #waiting = new Set<OpenStream>();
  #beatAtMs = Number.NEGATIVE_INFINITY;
  #isArmed = false;

  /** `run` spreads the steps of a beat over turns of the event loop. */
  constructor(clock: Clock, run: (steps: Generator<undefined, void, void>) => Promise<void>) {
    this.#clock = clock;
    this.#run = run;
  }

  open(read: () => void): PacedStream {
    const stream: OpenStream = { read, readAtMs: Number.NEGATIVE_INFINITY };
    this.#open.add(stream);
    return {
      note: () => this.#note(stream),
      [Symbol.dispose]: () => {
        this.#open.delete(stream);
        this.#waiting.delete(stream);
      },
    };
  }

  #note(stream: OpenStream): void {
    const nowMs = this.#clock.monotonic();
    const everyMs = Math.min(longestMs, msPerStream * this.#open.size);
    if (!this.#waiting.has(stream) && nowMs - stream.readAtMs >= everyMs) {
      stream.readAtMs = nowMs;
      stream.read();
      return;
    }
    this.#waiting.add(stream);
    if (this.#isArmed) return;
    this.#isArmed = true;
    this.#clock.after(Math.max(1, everyMs - (nowMs - Math.max(this.#beatAtMs, stream.readAtMs))), () => void this.#beat());
  }

  async #beat(): Promise<void> {
    this.#beatAtMs = this.#clock.monotonic();
    await this.#run(this.#readWaiting());
    this.#isArmed = false;
    const [next] = this.#waiting; // it was noted during this beat
    if (next) this.#note(next);
  }

  *#readWaiting(): Generator<undefined, void, void> {
    for (const stream of [...this.#waiting]) {
      if (!this.#waiting.delete(stream)) continue; // it has ended
      stream.readAtMs = this.#clock.monotonic();
      stream.read();
      yield;
    }
  }
}
