// What all dialects share on the wire: a route, and the checks that a reply must pass to be believed. Whatever does not fit
// together exactly is refused as `backend-bad-reply`; nothing is ever filled in.

import { type FinishReason, RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest, Generation } from './backend.ts';

export interface Route {
  readonly path: string;
  /** The JSON around the prompt's ids. A request with `onTokens` asks for a stream, where the route has one. */
  around(request: GenerateRequest, model: string | undefined): { readonly head: string; readonly tail: string };
  parse(text: string, request: GenerateRequest): Generation;
  /** Absent where the server's stream is not exact. */
  openStream?(request: GenerateRequest): TokenStream;
}

/** The body as the buffers it is made of: the context's ids are those of the ledger, neither copied nor written again. */
export function toBody(route: Route, request: GenerateRequest, model: string | undefined): Buffer[] {
  const { head, tail } = route.around(request, model);
  return [Buffer.from(head), request.promptJson, Buffer.from(tail)];
}

/** A reply that comes in parts, each the data of one event. */
export interface TokenStream {
  take(text: string): void;
  /** All that has come. */
  readonly tokenIds: readonly unknown[];
  readonly logprobs: readonly unknown[];
  /** As the server ended it, or, where it was cut off, as aborted. */
  end(isCut: boolean): Generation;
}

// Arrays of tokens are checked by hand: a schema run on each of thousands of entries would cost more than all else in a turn.
export const array = z.custom<readonly unknown[]>(Array.isArray, 'not an array');

/** What is not JSON came from something between us and the server, or was cut: it may be tried again. */
export function parseReply<T>(schema: z.ZodType<T>, text: string): T {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new RolloutError('backend-failed', `the reply is not JSON: ${text.slice(0, 200)}`, { cause: error });
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) throw refuse(z.prettifyError(parsed.error));
  return parsed.data;
}

export interface RawTokens {
  readonly tokenIds: readonly unknown[];
  readonly logprobs: readonly unknown[];
  readonly finishReason: FinishReason;
  /** How many tokens the server says the prompt had. */
  readonly promptTokens?: number | null | undefined;
  readonly cachedTokens?: number | null | undefined;
}

export function toGeneration({ promptTokens, maxTokens }: GenerateRequest, raw: RawTokens): Generation {
  const { finishReason, cachedTokens, promptTokens: seen } = raw;
  const { length } = raw.tokenIds;
  if (length > maxTokens) throw refuse(`${length} tokens where at most ${maxTokens} were asked for`);
  if (length === 0 && finishReason !== 'abort') throw refuse('no tokens');
  if (raw.logprobs.length !== length) throw refuse(`${raw.logprobs.length} logprobs for ${length} tokens`);
  if (typeof seen === 'number' && seen !== promptTokens) throw refuse(`a prompt of ${seen} tokens, not the ${promptTokens} that were sent`);
  const tokenIds = new Int32Array(length);
  const logprobs = new Float32Array(length);
  for (let i = 0; i < length; i++) {
    tokenIds[i] = toTokenId(raw.tokenIds[i]);
    logprobs[i] = toLogprob(raw.logprobs[i]);
  }
  return { tokenIds, logprobs, finishReason, ...(typeof cachedTokens === 'number' ? { cachedTokens } : {}) };
}

/** The `onTokens` of nobody: the stream is there to be cut, and is read when it has ended. */
export const unwatched = () => {};

/** Tells `onTokens` what each event brings, and refuses more than was asked for as soon as it comes. */
export function watchStream(stream: TokenStream, request: GenerateRequest): (data: string) => void {
  let told = 0;
  return (data) => {
    stream.take(data);
    const tokenIds = stream.tokenIds.slice(told);
    if (tokenIds.length === 0) return;
    const part = toGeneration(
      { ...request, maxTokens: request.maxTokens - told },
      {
        tokenIds,
        logprobs: stream.logprobs.slice(told),
        finishReason: 'abort',
      },
    );
    told += tokenIds.length;
    request.onTokens?.(part.tokenIds, part.logprobs);
  };
}

function toTokenId(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0x7fff_ffff) return value;
  throw refuse(`${JSON.stringify(value)} as a token id`);
}

/** Servers write -9999 or less where they have none. What is clearly above 0 is a logit; a hair above it is rounding. */
function toLogprob(value: unknown): number {
  if (typeof value === 'number' && value > -9999 && value < 1e-3) return value;
  throw refuse(`${JSON.stringify(value)} as a logprob`);
}

export function refuse(what: string): RolloutError {
  return new RolloutError('backend-bad-reply', `the backend answered with ${what}`);
}
