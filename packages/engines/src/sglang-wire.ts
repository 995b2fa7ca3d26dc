// SGLang's /generate on the wire. Ids and logprobs come in pairs, and must match the separate list of ids.

import { definedOf, type FinishReason, type Sampling, stoppedBy } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest, Generation } from './backend.ts';
import { choiceToRegex, minTokensOf, plainFields, refuseFields } from './params/sampling-fields.ts';
import { refuse } from './reply/bad-reply.ts';
import { toVersion } from './reply/weight-versions.ts';
import { addMask, array, parseReply, type TokenRoute, toGeneration } from './wire.ts';

export const sglangRoute: TokenRoute = {
  path: '/generate',
  expertsFormat: 'raw',
  around(request) {
    const { adapter, cacheSalt, priority } = request;
    const options = {
      sampling_params: samplingParams(request),
      // High values of `priority` go first. `extra_key` is part of a prefix's key in the cache, in older versions too.
      ...definedOf({ lora_path: adapter, extra_key: cacheSalt, priority }),
      return_logprob: true,
      logprob_start_len: -1,
      top_logprobs_num: 0,
      return_text_in_logprobs: false,
      stream: request.onTokens !== undefined,
      ...definedOf({ routed_dp_rank: request.rank }),
      ...(request.sampling.routed_experts
        ? { return_routed_experts: true, routed_experts_start_len: request.knownExperts?.tokens ?? 0 }
        : {}),
      ...(request.sampling.sampling_mask ? { return_sampling_mask: true } : {}),
    };
    return { head: `{"rid":${JSON.stringify(request.requestId)},"input_ids":[`, tail: `],${JSON.stringify(options).slice(1)}` };
  },
  parse: (text, request) => toWhole(readPart(text), request),
  /** Each event has all tokens so far, unless the server was started to send only the new ones. */
  openStream(request) {
    let part: SglangPart | undefined;
    let first: number | undefined;
    return {
      get tokenIds() {
        return part?.tokenIds ?? [];
      },
      get logprobs() {
        return part?.logprobs ?? [];
      },
      take(text) {
        const next = readPart(text);
        part = part ? joinParts(part, next) : next;
        first ??= next.version;
      },
      end(isCut) {
        const generation = toWhole(part ?? noPart, request, isCut);
        if (generation.versionSpans) return generation;
        const last = generation.policyVersions?.last;
        return first === undefined || last === undefined ? generation : { ...generation, policyVersions: { first, last } };
      },
    };
  },
};

interface SglangPart {
  readonly tokenIds: readonly unknown[];
  readonly logprobs: readonly unknown[];
  readonly mask?: readonly unknown[] | null | undefined;
  readonly finish?: string | undefined;
  readonly matched?: z.infer<typeof stoppedBy> | null | undefined;
  readonly version?: number | undefined;
  readonly meta: z.infer<typeof sglangReply>['meta_info'];
}

const noPart: SglangPart = { tokenIds: [], logprobs: [], meta: {} };

function readPart(text: string): SglangPart {
  const { output_ids, meta_info: meta } = parseReply(sglangReply, text);
  const pairs = meta.output_token_logprobs ?? [];
  const tokenIds = pairs.map((pair) => (Array.isArray(pair) ? pair[1] : undefined));
  const logprobs = pairs.map((pair) => (Array.isArray(pair) ? pair[0] : undefined));
  if (output_ids) checkIds(tokenIds, output_ids);
  return {
    tokenIds,
    logprobs,
    mask: meta.output_token_sampling_mask,
    finish: meta.finish_reason?.type,
    matched: meta.finish_reason?.matched,
    version: toVersion(meta.weight_version),
    meta,
  };
}

/** The total count in an event shows whether it has all tokens or only the new ones. */
function joinParts(before: SglangPart, next: SglangPart): SglangPart {
  const total = next.meta.completion_tokens;
  if (total === next.tokenIds.length) return next;
  const tokenIds = [...before.tokenIds, ...next.tokenIds];
  if (total !== tokenIds.length) throw refuse(`a stream with ${tokenIds.length} tokens where it counts ${total}`);
  const mask = next.mask && [...(before.mask ?? []), ...next.mask];
  return { ...next, tokenIds, logprobs: [...before.logprobs, ...next.logprobs], mask };
}

function toWhole(part: SglangPart, request: GenerateRequest, isCut = false): Generation {
  const { tokenIds, logprobs, mask, finish, matched, version, meta } = part;
  const finishReason = isCut ? 'abort' : toFinishReason(finish);
  const generation = toGeneration(request, {
    tokenIds,
    logprobs,
    finishReason,
    stoppedBy: matched,
    // A request that was aborted before its prefill reports no prompt tokens either.
    promptTokens: finishReason === 'abort' && tokenIds.length === 0 ? undefined : meta.prompt_tokens,
    cachedTokens: meta.cached_tokens,
    weightVersions: meta.weight_versions,
  });
  const masked = addMask(generation, request, mask);
  return version === undefined ? masked : { policyVersions: { first: version, last: version }, ...masked };
}

/** Every field with a default is always sent: SGLang takes missing ones from the model's generation config. */
function samplingParams({ sampling, maxTokens, stopTokenIds }: GenerateRequest): Record<string, unknown> {
  const { seed, top_k, stop = [], min_tokens = 0, logit_bias, structured_outputs } = sampling;
  if (min_tokens > 0) refuseFields(sampling, 'SGLang', { stop: 'it also stops at strings before min_tokens' });
  return {
    ...plainFields(sampling),
    top_k: top_k === 0 ? -1 : top_k,
    max_new_tokens: maxTokens,
    ...definedOf({ sampling_seed: seed, logit_bias }),
    ...(structured_outputs && toConstraint(structured_outputs)),
    n: 1,
    min_new_tokens: minTokensOf({ sampling, maxTokens }),
    stop,
    stop_token_ids: stopTokenIds,
    ignore_eos: false,
    no_stop_trim: true,
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
  };
}

function toConstraint({ json, regex, choice, grammar }: NonNullable<Sampling['structured_outputs']>): Record<string, unknown> {
  if (json) return { json_schema: JSON.stringify(json) };
  if (choice) return { regex: choiceToRegex(choice) };
  return definedOf({ regex, ebnf: grammar });
}

const sglangReply = z.looseObject({
  output_ids: array.nullish(),
  meta_info: z.looseObject({
    finish_reason: z.looseObject({ type: z.string(), matched: stoppedBy.nullish().catch(undefined) }).nullish(),
    prompt_tokens: z.int().nullish(),
    completion_tokens: z.int().nullish(),
    cached_tokens: z.int().nullish(),
    weight_version: z.unknown().optional(),
    weight_versions: z.unknown().optional(),
    output_token_logprobs: array.nullish(),
    output_token_sampling_mask: array.nullish(),
  }),
});

function checkIds(paired: readonly unknown[], listed: readonly unknown[]): void {
  if (paired.length !== listed.length) throw refuse(`${paired.length} logprobs for ${listed.length} tokens`);
  const at = paired.findIndex((id, i) => id !== listed[i]);
  if (at >= 0) throw refuse(`two ids for one token: ${JSON.stringify(listed[at])} and, with its logprob, ${JSON.stringify(paired[at])}`);
}

function toFinishReason(type: string | undefined): FinishReason {
  if (type === 'stop' || type === 'length' || type === 'abort') return type;
  throw refuse(`${JSON.stringify(type)} as the finish reason`);
}
