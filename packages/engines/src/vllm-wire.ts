// vLLM's two token routes on the wire: the JSON before and after the prompt's ids, and the fields read from a reply.

import { definedOf, type FinishReason, RolloutError, stoppedBy } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest, Generation } from './backend.ts';
import { minTokensOf, plainFields } from './params/sampling-fields.ts';
import { refuse } from './reply/bad-reply.ts';
import {
  addMask,
  array,
  isStreamed,
  parseReply,
  type RawTokens,
  type RouteRequest,
  type TokenRoute,
  type TokenStream,
  toGeneration,
} from './wire.ts';

export const generateRoute: TokenRoute = {
  path: '/inference/v1/generate',
  expertsFormat: 'npy',
  around(request, model) {
    const { requestId, adapter } = request;
    // Its server finds stop strings in the text of the tokens.
    const params = { ...samplingParams(request), detokenize: (request.sampling.stop ?? []).length > 0 };
    const rest = { ...scheduleParams(request), ...streamParams(request) };
    return {
      head: `${openObject({ request_id: requestId, model: adapter ?? model })}"token_ids":[`,
      tail: `],"sampling_params":${JSON.stringify(params)},${JSON.stringify(rest).slice(1)}`,
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
    if (request.sampling.sampling_mask)
      throw new RolloutError(
        'backend-refused',
        'vLLM reports sampling masks only on /inference/v1/generate; start it with --enable-scale-out --return-sampling-mask',
      );
    const { requestId, adapter } = request;
    const params = { ...samplingParams(request), return_tokens_as_token_ids: true, ...scheduleParams(request), ...streamParams(request) };
    const head = openObject({ request_id: requestId, model: adapter ?? model });
    return { head: `${head}"prompt":[`, tail: `],${JSON.stringify(params).slice(1)}` };
  },
  parse: (text, request) => toWhole(readCompletions(text), request),
  openStream: (request) => openDeltas(readCompletions, request),
};

/** vLLM serves low values of `priority` first. */
function scheduleParams({ cacheSalt, priority }: GenerateRequest): Record<string, unknown> {
  return definedOf({ cache_salt: cacheSalt, priority: priority === undefined ? undefined : -priority });
}

function streamParams(request: RouteRequest): Record<string, unknown> {
  return isStreamed(request) ? { stream: true, stream_options: { include_usage: true } } : { stream: false };
}

/** Every field with a default is always sent: servers have their own defaults (16 tokens, the model's generation config). */
function samplingParams(request: RouteRequest): Record<string, unknown> {
  const { sampling, promptTokens, maxTokens, stopTokenIds, knownExperts, streamInterval, topLogprobs = 0 } = request;
  const { seed, top_k, stop = [], logit_bias, structured_outputs, routed_experts: wantsExperts } = sampling;
  return {
    ...plainFields(sampling),
    top_k,
    max_tokens: maxTokens,
    ...definedOf({ seed, logit_bias, structured_outputs }),
    n: 1,
    min_tokens: minTokensOf(request),
    stop_token_ids: stopTokenIds,
    // Only the text would differ, which is not read; without it the last tokens of a stream wait for more.
    ...(stop.length > 0 ? { stop, include_stop_str_in_output: true } : {}),
    ignore_eos: false,
    skip_special_tokens: false,
    logprobs: topLogprobs,
    // A server that returns experts returns them for every request; the rows of the prompt can be left out.
    routed_experts_prompt_start: wantsExperts ? (knownExperts?.tokens ?? 0) : promptTokens,
    ...definedOf({ stream_interval: isStreamed(request) ? streamInterval : undefined }),
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
const choice = z.looseObject({
  finish_reason: z.string().nullish(),
  stop_reason: stoppedBy.nullish(),
  sampling_mask: array.nullish(),
});
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
  readonly stoppedBy?: RawTokens['stoppedBy'];
  readonly mask?: readonly unknown[] | null | undefined;
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
  const { finish_reason: finish, stop_reason: stoppedBy, weight_versions: weightVersions, sampling_mask: mask } = choices[0] ?? {};
  return { choices: read, finish, stoppedBy, weightVersions, mask, usage };
}

function readCompletions(text: string): VllmPart {
  const { choices, usage } = parseReply(completionsReply, text);
  const read = choices.map(({ logprobs }) => ({
    tokenIds: (logprobs?.tokens ?? []).map(fromTokenName),
    logprobs: logprobs?.token_logprobs ?? [],
  }));
  return { choices: read, finish: choices[0]?.finish_reason, stoppedBy: choices[0]?.stop_reason, usage };
}

function toWhole({ choices, finish, stoppedBy, usage, weightVersions, mask }: VllmPart, request: GenerateRequest): Generation {
  const [first] = choices;
  if (first === undefined || choices.length > 1) throw refuse(`${choices.length} choices where one was asked for`);
  const finishReason = toFinishReason(finish);
  const generation = toGeneration(request, { ...first, finishReason, stoppedBy, weightVersions, ...toCounts(usage) });
  return addMask(generation, request, mask);
}

/** Each event has only the new tokens. */
function openDeltas(read: (text: string) => VllmPart, request: GenerateRequest): TokenStream {
  const tokenIds: unknown[] = [];
  const logprobs: unknown[] = [];
  let finish: VllmPart['finish'];
  let stoppedBy: VllmPart['stoppedBy'];
  let usage: VllmPart['usage'];
  let weightVersions: unknown;
  let mask: unknown[] | undefined;
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
      stoppedBy = part.stoppedBy ?? stoppedBy;
      usage = part.usage ?? usage;
      weightVersions = part.weightVersions ?? weightVersions;
      if (part.mask) mask = pushAll(mask ?? [], part.mask);
    },
    end(isCut) {
      // A completion that is aborted before its first token ends without a finish reason.
      const isEmpty = finish === undefined && tokenIds.length === 0 && usage?.completion_tokens === 0;
      const finishReason = isCut || isEmpty ? 'abort' : toFinishReason(finish);
      const generation = toGeneration(request, { tokenIds, logprobs, finishReason, stoppedBy, weightVersions, ...toCounts(usage) });
      return addMask(generation, request, mask);
    },
  };
}

function pushAll<T>(all: T[], some: readonly T[]): T[] {
  for (const one of some) all.push(one);
  return all;
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
