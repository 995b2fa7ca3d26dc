// What the fake backend's dialects share: a parsed request, an output before it is serialized, and the faults in the output itself,
// so that each dialect serializes them in its own format.

import type { IncomingHttpHeaders } from 'node:http';
import { fakeLogprob } from './logprob.ts';

/** vLLM's two, SGLang's and llama.cpp's. */
export type FakeRoute = 'generate' | 'completions' | 'sglang' | 'llamacpp';
export type Json = Record<string, unknown>;

export interface FakeRequest {
  readonly route: FakeRoute;
  readonly promptIds: Int32Array;
  /** Undefined if the caller sent none. */
  readonly maxTokens: number | undefined;
  /** As sent: `sampling_params` if the dialect has them, otherwise everything but the prompt. */
  readonly sampling: Readonly<Json>;
  /** Everything but the prompt and the sampling. */
  readonly options: Readonly<Json>;
  readonly headers: IncomingHttpHeaders;
}

export interface FakeAnswer {
  readonly tokenIds: Int32Array;
  readonly finishReason: 'stop' | 'length' | 'abort';
  readonly text: string;
}

/** An answer before it is serialized; a fault may have made it invalid. */
export interface FakeOutput {
  readonly tokenIds: readonly unknown[];
  /** Undefined if the server has none. */
  readonly logprobs: readonly unknown[] | undefined;
  readonly promptTokens: number;
  readonly finishReason: 'stop' | 'length' | 'abort';
  readonly text: string;
  /** Four for each token but the last, if the server returns them. */
  readonly routedExperts?: Int32Array;
  /** Which weights sampled which tokens; those of the server's version if absent. */
  readonly weightVersions?: readonly WeightSpan[];
}

/** As vLLM and SGLang write them: the tokens from `start` up to `end`. */
export interface WeightSpan {
  readonly version: string;
  readonly start: number;
  readonly end: number;
}

/** The spans of an output, from the versions and the number of tokens that there were when each began. */
export function toWeightSpans(starts: readonly { readonly version: string; readonly start: number }[], tokens: number): WeightSpan[] {
  return starts.flatMap(({ version, start }, i) => {
    const end = Math.min(starts[i + 1]?.start ?? tokens, tokens);
    return start < end ? [{ version, start, end }] : [];
  });
}

export interface FakeServer {
  readonly model: string;
  /** Counts the generations. */
  readonly index: number;
  readonly weightVersion: string;
  /** Whether a text of these tokens ends inside a character. */
  endsInside(tokenIds: readonly unknown[]): boolean;
}

export interface FakeDialect {
  readonly path: string;
  /** The limit for a request without one; absent if it is the room in the context. */
  readonly defaultMaxTokens?: number;
  /** A string is the reason why the body is refused. */
  parse(body: Json, headers: IncomingHttpHeaders): FakeRequest | string;
  reply(request: FakeRequest, output: FakeOutput, server: FakeServer): Json;
  /** The events of a stream, if the caller asked for one. */
  events?(request: FakeRequest, output: FakeOutput, server: FakeServer): Json[] | undefined;
  /** The reply without its main part. */
  withoutOutput(reply: Json): Json;
  /** Why a context of this length is too short for the request; undefined if it is not. */
  findExcess(request: FakeRequest, contextTokens: number): string | undefined;
  /** A streamed request is checked after its 200, so its error is an event. */
  readonly checksLate?: true;
  error(status: number, message: string): Json;
}

/** `weightsAt` are those that sample the token at an index of the answer. */
export function toOutput(
  { promptIds }: FakeRequest,
  { tokenIds, finishReason, text }: FakeAnswer,
  weightsAt: (index: number) => number,
): FakeOutput {
  const logprobs = Array.from(tokenIds, (id, i) => fakeLogprob(promptIds.length + i, id, weightsAt(i)));
  return { tokenIds: Array.from(tokenIds), logprobs, promptTokens: promptIds.length, finishReason, text };
}

/** Two layers of two experts, derived from each token's position and id; each fits in a byte. */
export function toExperts({ promptIds }: FakeRequest, { tokenIds }: FakeAnswer): Int32Array {
  const all = [...promptIds, ...tokenIds].slice(0, -1);
  return Int32Array.from(all.flatMap((id, at) => [at & 0xff, id & 0xff, (id >> 8) & 0xff, 7]));
}

/** How many tokens each event of a stream has at most, if the request names no interval. */
const tokensPerEvent = 3;

/** How many tokens there are at the end of each event. With an interval, as in vLLM, the first token is sent at once. */
export function findEventEnds(tokens: number, { sampling }: Pick<FakeRequest, 'sampling'>): number[] {
  const interval = typeof sampling.stream_interval === 'number' ? sampling.stream_interval : undefined;
  const size = interval ?? tokensPerEvent;
  const first = interval === undefined ? size : 1;
  const count = Math.max(1, 1 + Math.ceil((tokens - first) / size));
  return Array.from({ length: count }, (_, i) => Math.min(first + i * size, tokens));
}

/** The output in parts; only the last one has the finish reason. */
export function splitOutput(
  request: Pick<FakeRequest, 'sampling'>,
  output: FakeOutput,
  { isCumulative }: { isCumulative: boolean },
): (FakeOutput & { isLast: boolean })[] {
  const { tokenIds, logprobs } = output;
  const ends = findEventEnds(tokenIds.length, request);
  return ends.map((end, i) => {
    const begin = isCumulative ? 0 : (ends[i - 1] ?? 0);
    return { ...output, tokenIds: tokenIds.slice(begin, end), logprobs: logprobs?.slice(begin, end), isLast: i === ends.length - 1 };
  });
}

export const outputFaults = [
  'misaligned',
  'no-logprobs',
  'floor-logprobs',
  'logits',
  'bad-ids',
  'too-many',
  'wrong-prompt',
  'abort',
] as const;
export type OutputFault = (typeof outputFaults)[number];

export function spoilOutput(output: FakeOutput, fault: OutputFault): FakeOutput {
  const { tokenIds, logprobs = [] } = output;
  const half = Math.floor(tokenIds.length / 2);
  switch (fault) {
    case 'misaligned':
      return { ...output, logprobs: logprobs.slice(0, -1) };
    case 'no-logprobs':
      return { ...output, logprobs: undefined };
    case 'floor-logprobs':
      return { ...output, logprobs: [-9999, ...logprobs.slice(1)] };
    case 'logits':
      return { ...output, logprobs: [12.5, ...logprobs.slice(1)] };
    case 'bad-ids':
      return { ...output, tokenIds: ['12', ...tokenIds.slice(1)] };
    case 'too-many':
      return { ...output, tokenIds: [...tokenIds, ...Array(1000).fill(1)], logprobs: [...logprobs, ...Array(1000).fill(-1)] };
    case 'wrong-prompt':
      return { ...output, promptTokens: output.promptTokens + 1 };
    case 'abort': {
      const { weightVersions: _, ...rest } = output;
      return { ...rest, tokenIds: tokenIds.slice(0, half), logprobs: logprobs.slice(0, half), finishReason: 'abort' };
    }
  }
}

/** The ids of a prompt; a string is the reason why they are refused. */
export function parseIds(name: string, ids: unknown): Int32Array | string {
  if (!Array.isArray(ids) || ids.length === 0) return `${name} must be a list of at least one id`;
  if (!ids.every((id) => Number.isInteger(id) && id >= 0)) return 'token ids must be integers from 0';
  return Int32Array.from(ids);
}

/** Undefined if none was sent; a string is the reason why it is refused. */
export function parseMaxTokens(name: string, value: unknown): number | undefined | string {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1) return value;
  return `${name} must be at least 1, got ${JSON.stringify(value)}.`;
}

export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON, so not an object either
  }
}
