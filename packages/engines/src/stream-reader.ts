// Reads the reply of a call that is streamed. Parsing hundreds of streams event by event would hold up the event loop, so their bytes are
// collected: for a second where tokens are needed only at the end of the call, else for as long as the number of streams asks for.

import { type Clock, systemClock } from '@millrace/base/clock';
import { type Pace, runNow, type Steps } from '@millrace/base/pace';
import type { PacedStream } from '@millrace/base/stream-beat';
import type { GenerateRequest, Generation } from './backend.ts';
import { openEventReader } from './reply/event-stream.ts';
import { type TakenExperts, takeExperts } from './reply/take-experts.ts';
import { type TokenStream, watchStream } from './wire.ts';

/** How often the tokens of a running stream are counted. */
const progressMs = 1000;
/** More than the events of a second: these are experts. */
const longBytes = 1 << 20;
/** Events of about a millisecond. */
const stepBytes = 1 << 15;

interface StreamReaderOptions {
  readonly request: GenerateRequest;
  /** Throws if an event is an error. */
  checkEvent(data: string): void;
  readonly pace: Pace;
  readonly clock?: Clock | undefined;
}

/** Dispose it when the call has ended, also when it failed: a caller that watches its tokens gets those that had arrived. */
export class StreamReader implements Disposable {
  /** In base64, as the stream had them. */
  experts: readonly Buffer[] | undefined;
  readonly #stream: TokenStream;
  readonly #options: StreamReaderOptions;
  readonly #clock: Clock;
  readonly #read: (chunk: Buffer) => void;
  /** Absent if tokens are needed only at the end. */
  readonly #watched: PacedStream | undefined;
  #chunks: Buffer[] = [];
  #readAt: number;
  #reading: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #hasEnded = false;

  constructor(stream: TokenStream, options: StreamReaderOptions) {
    const { request, checkEvent, pace, clock = systemClock } = options;
    this.#stream = stream;
    this.#options = options;
    this.#clock = clock;
    this.#readAt = clock.monotonic();
    const isWatched = request.onTokens !== undefined;
    const take = isWatched ? watchStream(stream, request) : (data: string) => stream.take(data);
    this.#read = openEventReader((data) => {
      checkEvent(data);
      take(data);
    });
    this.#watched = isWatched ? pace.openStream(() => this.#readNow()) : undefined;
  }

  /** Throws what was wrong with the stream so far. */
  onChunk(chunk: Buffer): void {
    this.#chunks.push(chunk);
    if (this.#watched) {
      this.#watched.note();
      if (this.#failure) throw this.#failure.error;
    } else if (!this.#reading && this.#clock.monotonic() - this.#readAt >= progressMs) {
      this.#readAt = this.#clock.monotonic();
      this.#reading = this.#readSome();
    }
  }

  /** Throws what was wrong with the stream. */
  async end(isCut: boolean): Promise<Generation> {
    this.#hasEnded = true;
    this.#watched?.[Symbol.dispose]();
    await this.#reading;
    if (!this.#failure && this.#chunks.length > 0) await this.#options.pace.run(this.#readRest());
    if (this.#failure) throw this.#failure.error;
    return this.#stream.end(isCut);
  }

  [Symbol.dispose](): void {
    this.#watched?.[Symbol.dispose]();
    if (this.#watched && !this.#hasEnded) this.#readNow();
  }

  #readNow(): void {
    try {
      runNow(this.#readWaiting());
    } catch (error) {
      this.#failure ??= { error }; // thrown with the next chunk, or at the end of the call
    }
  }

  async #readSome(): Promise<void> {
    const { pace, request } = this.#options;
    try {
      await pace.run(this.#readWaiting());
      request.onProgress?.(this.#stream.tokenIds.length);
    } catch (error) {
      this.#failure = { error }; // thrown at the end of the call
    }
    this.#reading = undefined;
  }

  /** Whole events only: experts are taken out of an event before it is parsed. Those that are still arriving are left to the end. */
  *#readWaiting(): Steps<void> {
    if (this.#failure || this.#chunks.reduce((sum, { length }) => sum + length, 0) > longBytes) return;
    const waiting = this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks);
    const at = waiting.lastIndexOf('\n\n');
    this.#chunks = at + 2 === waiting.length ? [] : [waiting.subarray(at < 0 ? 0 : at + 2)];
    if (at >= 0) yield* this.#readTaken(yield* takeExperts([waiting.subarray(0, at + 2)]));
  }

  *#readRest(): Steps<void> {
    yield* this.#readTaken(yield* takeExperts(this.#chunks));
  }

  *#readTaken(taken: TakenExperts): Steps<void> {
    this.experts = taken.experts ?? this.experts;
    for (const bytes of taken.rest) {
      for (let at = 0; at < bytes.length; at += stepBytes) {
        this.#read(bytes.subarray(at, at + stepBytes));
        yield;
      }
    }
  }
}
