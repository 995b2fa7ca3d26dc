// Reads the reply of a call that is streamed. Where tokens are needed only at the end of the call, its bytes are collected and parsed
// once a second, at the pace of all replies: parsing hundreds of streams event by event would hold up the event loop.

import { type Clock, systemClock } from '@millrace/base/clock';
import { type Pace, runNow, type Steps } from '@millrace/base/pace';
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

export interface StreamReader {
  onChunk(chunk: Buffer): void;
  /** Throws what was wrong with the stream. */
  end(isCut: boolean): Promise<Generation>;
  /** In base64, as the stream had them. */
  readonly experts: readonly Buffer[] | undefined;
}

interface StreamReaderOptions {
  readonly request: GenerateRequest;
  /** Throws if an event is an error. */
  checkEvent(data: string): void;
  readonly pace: Pace;
  readonly clock?: Clock | undefined;
}

export function openStreamReader(
  stream: TokenStream,
  { request, checkEvent, pace, clock = systemClock }: StreamReaderOptions,
): StreamReader {
  const isWatched = request.onTokens !== undefined;
  const take = isWatched ? watchStream(stream, request) : (data: string) => stream.take(data);
  const read = openEventReader((data) => {
    checkEvent(data);
    take(data);
  });
  let chunks: Buffer[] = [];
  let readAt = clock.monotonic();
  let reading: Promise<void> | undefined;
  let failure: { readonly error: unknown } | undefined;
  let experts: readonly Buffer[] | undefined;
  const readTaken = function* (taken: TakenExperts): Steps<void> {
    experts = taken.experts ?? experts;
    for (const bytes of taken.rest) {
      for (let at = 0; at < bytes.length; at += stepBytes) {
        read(bytes.subarray(at, at + stepBytes));
        yield;
      }
    }
  };
  /** Whole events only: experts are taken out of an event before it is parsed. Those that are still arriving are left to the end. */
  const readWaiting = function* (): Steps<void> {
    if (failure || chunks.reduce((sum, { length }) => sum + length, 0) > longBytes) return;
    const waiting = Buffer.concat(chunks);
    const at = waiting.lastIndexOf('\n\n');
    chunks = [waiting.subarray(at < 0 ? 0 : at + 2)];
    if (at >= 0) yield* readTaken(yield* takeExperts([waiting.subarray(0, at + 2)]));
  };
  const readRest = function* (): Steps<void> {
    yield* readTaken(yield* takeExperts(chunks));
  };
  const readSome = async () => {
    try {
      await pace.run(readWaiting());
      request.onProgress?.(stream.tokenIds.length);
    } catch (error) {
      failure = { error }; // thrown at the end of the call
    }
    reading = undefined;
  };
  return {
    onChunk(chunk) {
      chunks.push(chunk);
      if (isWatched) return runNow(readWaiting());
      if (reading || clock.monotonic() - readAt < progressMs) return;
      readAt = clock.monotonic();
      reading = readSome();
    },
    async end(isCut) {
      await reading;
      if (!failure && chunks.length > 0) await pace.run(readRest());
      if (failure) throw failure.error;
      return stream.end(isCut);
    },
    get experts() {
      return experts;
    },
  };
}
