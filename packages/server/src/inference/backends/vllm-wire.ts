// vLLM's two token routes on the wire: the JSON before and after the prompt's ids, and the fields read from a reply.

import { definedOf, type FinishReason } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest, Generation } from './backend.ts';
import { refuse } from './reply/bad-reply.ts';
import { array, parseReply, type RawTokens, type RouteRequest, type TokenRoute, type TokenStream, toGeneration } from './wire.ts';

export const generateRoute: TokenRoute = {
  path: '/inference/v1/generate',
  expertsFormat: 'npy',
  around(request, model) {
    const { requestId } = request;
    const params = { ...samplingParams(request), detokenize: false };
    return {
      head: `${openObject({ request_id: requestId, model })}"token_ids":[`,
      tail: `],"sampling_params":${JSON.stringify(params)},${JSON.stringify(streamParams(request)).slice(1)}`,
    };
  },
  parse: (text, request) => toWhole(readGenerate(text), request),
  openStream: (request) => openDeltas(readGenerate, request),
};

/** The ids are read from the names of the logprobs: `return_token_ids` would also send the whole prompt back. */
export const completionsRoute: TokenRoute = {
  path: '/v1/completions',
  expertsFormat: 'npy',
  around(request, model) {
    const params = { ...samplingParams(request), return_tokens_as_token_ids: true, ...streamParams(request) };
    return { head: `${openObject({ request_id: request.requestId, model })}"prompt":[`, tail: `],${JSON.stringify(params).slice(1)}` };
  },
  parse: (text, request) => toWhole(readCompletions(text), request),
  openStream: (request) => openDeltas(readCompletions, request),
};

function streamParams({ onTokens }: GenerateRequest): Record<string, unknown> {
  return onTokens ? { stream: true, stream_options: { include_usage: true } } : { stream: false };
}

/** Every field is always sent: servers have their own defaults (16 tokens, the model's generation config). */
function samplingParams(request: RouteRequest): Record<string, unknown> {
  const { sampling, promptTokens, maxTokens, stopTokenIds, knownExperts, onTokens, streamInterval } = request;
  const { seed, routed_experts: wantsExperts, ...fields } = sampling;
  return {
    ...fields,
    max_tokens: maxTokens,
    ...definedOf({ seed }),
    n: 1,
    min_tokens: 0,
    stop_token_ids: stopTokenIds,
    ignore_eos: false,
    skip_special_tokens: false,
    logprobs: 0,
    // A server that returns experts returns them for every request; the rows of the prompt can be left out.
    routed_experts_prompt_start: wantsExperts ? (knownExperts?.tokens ?? 0) : promptTokens,
    ...definedOf({ stream_interval: onTokens && streamInterval }),
  };
}

function openObject(fields: Record<string, string | undefined>): string {
  const json = JSON.stringify(fields);
  return json === '{}' ? json.slice(0, -1) : `${json.slice(0, -1)},`;
}

const usageReply = z.looseObject({
  prompt_tokens: z.int().nullish(),
  completion_tokens: z.int().nullish(),
  prompt_tokens_details: z.looseObject({ cached_tokens: z.int().nullish() }).nullish(),
});
type Usage = z.infer<typeof usageReply>;
const choice = z.looseObject({ finish_reason: z.string().nullish() });
const generateReply = z.looseObject({
  choices: z.array(
    choice.extend({
      token_ids: array,
      weight_versions: z.unknown().optional(),
      logprobs: z.looseObject({ content: array.nullish() }).nullish(),
    }),
  ),
  usage: usageReply.nullish(),
});
const completionsReply = z.looseObject({
  choices: z.array(choice.extend({ logprobs: z.looseObject({ tokens: array.nullish(), token_logprobs: array.nullish() }).nullish() })),
  usage: usageReply.nullish(),
});

/** A whole reply, or one event of a stream. The last event has the usage and no choice. */
interface VllmPart {
  readonly choices: readonly Pick<RawTokens, 'tokenIds' | 'logprobs'>[];
  readonly finish?: string | null | undefined;
  /** In the last event with a choice. */
  readonly weightVersions?: unknown;
  readonly usage?: Usage | null | undefined;
}

function readGenerate(text: string): VllmPart {
  const { choices, usage } = parseReply(generateReply, text);
  const read = choices.map(({ token_ids, logprobs }) => ({
    tokenIds: token_ids,
    logprobs: (logprobs?.content ?? []).map((entry, at) => readEntry(entry, token_ids[at])),
  }));
  return { choices: read, finish: choices[0]?.finish_reason, weightVersions: choices[0]?.weight_versions, usage };
}

function readCompletions(text: string): VllmPart {
  const { choices, usage } = parseReply(completionsReply, text);
  const read = choices.map(({ logprobs }) => ({
    tokenIds: (logprobs?.tokens ?? []).map(fromTokenName),
    logprobs: logprobs?.token_logprobs ?? [],
  }));
  return { choices: read, finish: choices[0]?.finish_reason, usage };
}

function toWhole({ choices, finish, usage, weightVersions }: VllmPart, request: GenerateRequest): Generation {
  const [first] = choices;
  if (first === undefined || choices.length > 1) throw refuse(`${choices.length} choices where one was asked for`);
  return toGeneration(request, { ...first, finishReason: toFinishReason(finish), weightVersions, ...toCounts(usage) });
}

/** Each event has only the new tokens. */
function openDeltas(read: (text: string) => VllmPart, request: GenerateRequest): TokenStream {
  const tokenIds: unknown[] = [];
  const logprobs: unknown[] = [];
  let finish: VllmPart['finish'];
  let usage: VllmPart['usage'];
  let weightVersions: unknown;
  return {
    tokenIds,
    logprobs,
    take(text) {
      const part = read(text);
      if (part.choices.length > 1) throw refuse(`${part.choices.length} choices where one was asked for`);
      const { tokenIds: ids = [], logprobs: values = [] } = part.choices[0] ?? {};
      for (const id of ids) tokenIds.push(id);
      for (const value of values) logprobs.push(value);
      finish = part.finish ?? finish;
      usage = part.usage ?? usage;
      weightVersions = part.weightVersions ?? weightVersions;
    },
    end(isCut) {
      // A completion that is aborted before its first token ends without a finish reason.
      const isEmpty = finish === undefined && tokenIds.length === 0 && usage?.completion_tokens === 0;
      const finishReason = isCut || isEmpty ? 'abort' : toFinishReason(finish);
      return toGeneration(request, { tokenIds, logprobs, finishReason, weightVersions, ...toCounts(usage) });
    },
  };
}

/** The logprob of an entry. It names its token by `token_id`, in older versions by a name; an id must be that of the sampled token. */
function readEntry(entry: unknown, sampled: unknown): unknown {
  if (typeof entry !== 'object' || entry === null || !('logprob' in entry)) return undefined;
  const named = 'token_id' in entry ? entry.token_id : 'token' in entry ? fromTokenName(entry.token) : undefined;
  if (typeof named === 'number' && typeof sampled === 'number' && named !== sampled)
    throw refuse(`two ids for one token: ${sampled} and, with its logprob, ${named}`);
  return entry.logprob;
}

/** `token_id:<id>`; any other name is returned unchanged and refused later. */
function fromTokenName(name: unknown): unknown {
  return typeof name === 'string' && /^token_id:\d+$/.test(name) ? Number(name.slice(9)) : name;
}

function toCounts(usage: Usage | null | undefined) {
  return { promptTokens: usage?.prompt_tokens, cachedTokens: usage?.prompt_tokens_details?.cached_tokens };
}

function toFinishReason(reason: string | null | undefined): FinishReason {
  switch (reason) {
    case 'stop':
    case 'length':
    case 'abort':
      return reason;
    case 'repetition': // stopped by the server; the policy did not end its turn
      return 'length';
    default:
      throw refuse(`${JSON.stringify(reason)} as the finish reason`);
  }
}
