// What all dialects share on the wire: a route, and the checks that every reply must pass. A reply that is not exactly
// consistent is refused as `backend-bad-reply`; nothing is ever filled in.

import { definedOf, type FinishReason, RolloutError, type StoppedBy } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest, Generation } from './backend.ts';
import { refuse } from './reply/bad-reply.ts';
import type { ExpertsFormat } from './reply/routed-experts.ts';
import { readVersionSpans, toPolicyVersions } from './reply/weight-versions.ts';
import { toSamplingMask } from './sampling-mask.ts';

/** A server's route that continues token ids. */
export interface TokenRoute {
  readonly path: string;
  /** How its replies have routed experts, which `parse` and the stream leave out; absent if they never do. */
  readonly expertsFormat?: ExpertsFormat;
  /** The JSON around the prompt's ids. A streamed request asks for a stream if the route has one. */
  around(request: RouteRequest, model: string | undefined): { readonly head: string; readonly tail: string };
  /** The whole body of a route that does not take ids; then `around` is not used. */
  body?(request: RouteRequest, model: string | undefined): string;
  parse(text: string, request: GenerateRequest): Generation;
  /** Absent if the server's stream is not exact. */
  openStream?(request: GenerateRequest): TokenStream;
}

/** A request as an adapter sends it along a route. */
export interface RouteRequest extends GenerateRequest {
  /** Streams a call whose tokens are needed only at its end, so that a cut keeps those that came. */
  readonly isCollected?: boolean;
  /** How many tokens the server collects for each event of a stream. */
  readonly streamInterval?: number;
  /** How many logprobs the server reports besides that of the sampled token; none by default. */
  readonly topLogprobs?: number;
  /** Called when a part of a stream has arrived. */
  readonly onChunk?: () => void;
}

/** The body as a list of buffers. The context's ids are the ledger's own buffer: they are neither copied nor serialized again. */
export function toBody(route: TokenRoute, request: RouteRequest, model: string | undefined): Buffer[] {
  if (route.body) return [Buffer.from(route.body(request, model))];
  const { head, tail } = route.around(request, model);
  return [Buffer.from(head), request.promptJson, Buffer.from(tail)];
}

/** A reply that arrives in parts, each the data of one event. */
export interface TokenStream {
  take(text: string): void;
  /** Everything that has arrived. */
  readonly tokenIds: readonly unknown[];
  readonly logprobs: readonly unknown[];
  /** Ends as the server said, or as `abort` if the stream was cut. */
  end(isCut: boolean): Generation;
}

// Arrays of tokens are checked by hand: a schema for each of thousands of entries would cost more than the rest of a turn.
export const array = z.custom<readonly unknown[]>(Array.isArray, 'not an array');

/** A reply that is not JSON was truncated or comes from a proxy in front of the server, so it can be retried. */
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
  /** As the server reports it; undefined or null for the model's own end, and where it does not. */
  readonly stoppedBy?: StoppedBy | null | undefined;
  /** How many prompt tokens the server reports. */
  readonly promptTokens?: number | null | undefined;
  readonly cachedTokens?: number | null | undefined;
  /** Spans of tokens with the weights that sampled them. */
  readonly weightVersions?: unknown;
}

export function toGeneration({ promptTokens, maxTokens, stopTokenIds }: GenerateRequest, raw: RawTokens): Generation {
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
  const versionSpans = readVersionSpans(raw.weightVersions, length);
  const policyVersions = versionSpans && toPolicyVersions(versionSpans);
  const stoppedBy = finishReason === 'stop' ? (raw.stoppedBy ?? findStopToken(tokenIds, stopTokenIds)) : undefined;
  const optional = definedOf({ stoppedBy, cachedTokens: cachedTokens ?? undefined, versionSpans, policyVersions });
  return { tokenIds, logprobs, finishReason, ...optional };
}

/** The last token, if it ends a turn. */
export function findStopToken(tokenIds: Int32Array, stopTokenIds: readonly number[]): number | undefined {
  const last = tokenIds.at(-1);
  return last !== undefined && stopTokenIds.includes(last) ? last : undefined;
}

/** A request that asks for sampling masks must get one for each token. */
export function addMask(generation: Generation, { sampling }: GenerateRequest, rows: unknown): Generation {
  if (!sampling.sampling_mask || generation.tokenIds.length === 0) return generation;
  const samplingMask = toSamplingMask(rows, generation.tokenIds);
  if (typeof samplingMask === 'string') throw refuse(samplingMask);
  return { ...generation, samplingMask };
}

export function isStreamed({ onTokens, isCollected = false }: RouteRequest): boolean {
  return onTokens !== undefined || isCollected;
}

/** Passes the tokens of each event to `onTokens`. A stream with too many tokens is refused at once. */
export function watchStream(stream: TokenStream, request: GenerateRequest): (data: string) => void {
  let seen = 0;
  return (data) => {
    stream.take(data);
    const tokenIds = stream.tokenIds.slice(seen);
    if (tokenIds.length === 0) return;
    const part = toGeneration(
      { ...request, maxTokens: request.maxTokens - seen },
      {
        tokenIds,
        logprobs: stream.logprobs.slice(seen),
        finishReason: 'abort',
      },
    );
    seen += tokenIds.length;
    request.onTokens?.(part.tokenIds, part.logprobs);
  };
}

function toTokenId(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0x7fff_ffff) return value;
  throw refuse(`${JSON.stringify(value)} as a token id`);
}

/** Servers write -9999 or less if they have none. A value clearly above 0 is a logit; one slightly above it is rounding. */
function toLogprob(value: unknown): number {
  if (typeof value === 'number' && value > -9999 && value < 1e-3) return value;
  throw refuse(`${JSON.stringify(value)} as a logprob`);
}
