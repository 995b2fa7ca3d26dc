// What the fake backend's dialects share: a parsed request, an output before it is serialized, and the faults in the output itself,
// so that each dialect serializes them in its own format.

import type { IncomingHttpHeaders } from 'node:http';
import { fakeLogprob } from './logprob.ts';

/** vLLM's two, SGLang's, llama.cpp's, and that of ProRL Agent's trainers. */
type FakeRoute = 'generate' | 'completions' | 'sglang' | 'llamacpp' | 'prorl';
export type Json = Record<string, unknown>;

export interface FakeRequest {
  readonly route: FakeRoute;
  /** By which the engine knows it: in its reply, and where it is aborted. Absent if the caller sent none. */
  readonly id: string | undefined;
  readonly promptIds: Int32Array;
  /** Undefined if the caller sent none. */
  readonly maxTokens: number | undefined;
  readonly isStream: boolean;
  /** As sent: `sampling_params` if the dialect has them, otherwise everything but the prompt. */
  readonly sampling: Readonly<Json>;
  /** Everything but the prompt and the sampling. */
  readonly options: Readonly<Json>;
  readonly headers: IncomingHttpHeaders;
}

/** Why a request is not served, as the engine says it. */
export interface FakeRefusal {
  readonly status: number;
  readonly body: Json;
  /** If given, a streamed request gets a 200, and then this as an event: the engine checks it late. */
  readonly event?: Json;
}

/** What a request is checked against. */
export interface FakeLimits {
  /** The names that it serves; any name if absent. */
  readonly models?: readonly string[] | undefined;
  /** The LoRA adapters that it serves; any adapter if absent. */
  readonly adapters?: readonly string[] | undefined;
  readonly contextTokens: number;
  readonly vocabularySize: number;
}

export interface FakeAnswer {
  readonly tokenIds: Int32Array;
  readonly finishReason: 'stop' | 'length' | 'abort';
  /** A stop string, or a stop token other than the end of the turn. */
  readonly stoppedBy?: string | number;
}

/** Which weights sampled the tokens from `start` up to `end`. */
export interface WeightSpan {
  readonly version: string;
  readonly start: number;
  readonly end: number;
}

/** An answer before it is serialized; a fault may have made it invalid. */
export interface FakeOutput {
  readonly tokenIds: readonly unknown[];
  /** Undefined if the server has none. */
  readonly logprobs: readonly unknown[] | undefined;
  readonly promptTokens: number;
  readonly finishReason: 'stop' | 'length' | 'abort';
  readonly stoppedBy?: string | number | undefined;
  readonly weightVersions: readonly WeightSpan[];
  /** Four for each token but the last, if the server returns them. */
  readonly routedExperts?: Int32Array;
  /** A mask for each token, if the server returns them. */
  readonly samplingMask?: readonly (readonly number[])[];
}

/** The tokens of one event. */
export interface FakePart {
  /** All tokens that are known, of this part and others. */
  readonly output: FakeOutput;
  readonly begin: number;
  readonly end: number;
  readonly isLast: boolean;
}

export interface FakeServer {
  readonly model: string;
  /** Counts the generations. */
  readonly index: number;
  readonly weightVersion: string;
  readonly contextTokens: number;
  decode(tokenIds: readonly unknown[]): string;
}

/** `prorl`: a trainer's own server, which has nothing but its token route. */
export type FakeEngine = 'vllm' | 'sglang' | 'llamacpp' | 'prorl';

export interface FakeDialect {
  readonly engine: FakeEngine;
  readonly path: string;
  /** The limit for a request without one; absent if it is the room in the context. */
  readonly defaultMaxTokens?: number;
  /** All checks of the engine, in its order. */
  parse(body: unknown, headers: IncomingHttpHeaders, limits: FakeLimits): FakeRequest | FakeRefusal;
  /** The id by which a running request is aborted; absent if the engine has no such route. */
  abortId?(request: FakeRequest): string | undefined;
  reply(request: FakeRequest, output: FakeOutput, server: FakeServer): Json;
  /** The events that carry a part of a stream. */
  events(request: FakeRequest, part: FakePart, server: FakeServer): Json[];
  /** What ends a stream; nothing on llama.cpp. */
  readonly lastLine: string;
  /** The refusal of a server that has no room; absent if the engine queues without a limit. */
  busy?(request: FakeRequest, server: FakeServer): FakeRefusal;
  /** The reply without its main part. */
  withoutOutput(reply: Json): Json;
  error(status: number, message: string): Json;
}

export function isRefusal(parsed: FakeRequest | FakeRefusal): parsed is FakeRefusal {
  return 'status' in parsed;
}

/** What the server was started to return in addition to tokens. */
interface FakeExtras {
  readonly routedExperts?: boolean | undefined;
  readonly samplingMask?: boolean | undefined;
}

/** The output without logprobs and weight versions, which are known when the tokens are sampled. */
export function toOutput(request: FakeRequest, answer: FakeAnswer, { routedExperts, samplingMask }: FakeExtras): FakeOutput {
  return {
    tokenIds: Array.from(answer.tokenIds),
    logprobs: undefined,
    promptTokens: request.promptIds.length,
    finishReason: answer.finishReason,
    stoppedBy: answer.stoppedBy,
    weightVersions: [],
    ...(routedExperts ? { routedExperts: toExperts(request, answer) } : {}),
    ...(samplingMask ? { samplingMask: toMasks(answer) } : {}),
  };
}

interface LogprobRange {
  readonly begin: number;
  readonly end: number;
  readonly weights: number;
  readonly isProcessed?: boolean | undefined;
}

/** The logprobs of the tokens from `begin` up to `end`, sampled by these weights. */
export function toLogprobs({ promptIds, sampling }: FakeRequest, { tokenIds }: FakeAnswer, range: LogprobRange): number[] {
  const { begin, end, weights, isProcessed } = range;
  const temperature = isProcessed ? Number(sampling.temperature ?? 1) : 1;
  const isOnly = isProcessed && sampling.top_k === 1;
  return Array.from(tokenIds.subarray(begin, end), (id, i) =>
    isOnly ? 0 : fakeLogprob(promptIds.length + begin + i, id, { weights, temperature }),
  );
}

/** Two layers of two experts, derived from each token's position and id; each fits in a byte. */
function toExperts({ promptIds }: FakeRequest, { tokenIds }: FakeAnswer): Int32Array {
  const all = [...promptIds, ...tokenIds].slice(0, -1);
  return Int32Array.from(all.flatMap((id, at) => [at & 0xff, id & 0xff, (id >> 8) & 0xff, 7]));
}

/** Two or three ids for each token, one of them its own. */
function toMasks({ tokenIds }: FakeAnswer): number[][] {
  return Array.from(tokenIds, (id, at) => (at % 2 === 0 ? [id, id + 1] : [id + 2, id + 1, id]));
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
export function splitOutput(output: FakeOutput, request: Pick<FakeRequest, 'sampling'>): FakePart[] {
  const ends = findEventEnds(output.tokenIds.length, request);
  return ends.map((end, i) => ({ output, begin: ends[i - 1] ?? 0, end, isLast: i === ends.length - 1 }));
}

export function cutOutput(output: FakeOutput, begin: number, end?: number): FakeOutput {
  const { tokenIds, logprobs, samplingMask } = output;
  return {
    ...output,
    tokenIds: tokenIds.slice(begin, end),
    logprobs: logprobs?.slice(begin, end),
    ...(samplingMask ? { samplingMask: samplingMask.slice(begin, end) } : {}),
  };
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
type OutputFault = (typeof outputFaults)[number];

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
    case 'abort':
      return { ...cutOutput(output, 0, half), weightVersions: cutSpans(output.weightVersions, half), finishReason: 'abort' };
  }
}

function cutSpans(spans: readonly WeightSpan[], length: number): WeightSpan[] {
  return spans.filter(({ start }) => start < length).map((span) => ({ ...span, end: Math.min(span.end, length) }));
}

export function isTokenIds(ids: unknown): ids is number[] {
  return Array.isArray(ids) && ids.every((id) => Number.isInteger(id) && id >= 0);
}

export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
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
