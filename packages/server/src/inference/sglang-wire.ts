// SGLang's /generate on the wire. Ids and logprobs come in pairs, and the list of ids beside them must say the same.

import type { FinishReason } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest } from './backend.ts';
import { array, parseReply, type Route, refuse, toGeneration } from './wire.ts';

export const sglangRoute: Route = {
  path: '/generate',
  around(request) {
    const options = {
      sampling_params: samplingParams(request),
      return_logprob: true,
      logprob_start_len: -1,
      top_logprobs_num: 0,
      return_text_in_logprobs: false,
      stream: false,
    };
    return { head: `{"rid":${JSON.stringify(request.requestId)},"input_ids":[`, tail: `],${JSON.stringify(options).slice(1)}` };
  },
  parse(text, request) {
    const { output_ids, meta_info: meta } = parseReply(sglangReply, text);
    const pairs = meta.output_token_logprobs ?? [];
    const tokenIds = pairs.map((pair) => (Array.isArray(pair) ? pair[1] : undefined));
    if (output_ids) checkIds(tokenIds, output_ids);
    const finishReason = toFinishReason(meta.finish_reason?.type);
    const version = toVersion(meta.weight_version);
    return {
      ...toGeneration(request, {
        tokenIds,
        logprobs: pairs.map((pair) => (Array.isArray(pair) ? pair[0] : undefined)),
        finishReason,
        // What was aborted before its prefill has no tokens, and says that its prompt had none either.
        promptTokens: finishReason === 'abort' && pairs.length === 0 ? undefined : meta.prompt_tokens,
        cachedTokens: meta.cached_tokens,
      }),
      ...(version === undefined ? {} : { policyVersions: { first: version, last: version } }),
    };
  },
};

/** SGLang takes what is not sent from the model's generation config, so every field is always sent. */
function samplingParams({ sampling, maxTokens, stopTokenIds }: GenerateRequest): Record<string, unknown> {
  const { seed, top_k, max_tokens: _, ...fields } = sampling;
  return {
    ...fields,
    top_k: top_k === 0 ? -1 : top_k,
    max_new_tokens: maxTokens,
    ...(seed === undefined ? {} : { sampling_seed: seed }),
    n: 1,
    min_new_tokens: 0,
    stop: [],
    stop_token_ids: stopTokenIds,
    ignore_eos: false,
    no_stop_trim: true,
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
  };
}

const sglangReply = z.looseObject({
  output_ids: array.nullish(),
  meta_info: z.looseObject({
    finish_reason: z.looseObject({ type: z.string() }).nullish(),
    prompt_tokens: z.int().nullish(),
    cached_tokens: z.int().nullish(),
    weight_version: z.unknown().optional(),
    output_token_logprobs: array.nullish(),
  }),
});

function checkIds(paired: readonly unknown[], listed: readonly unknown[]): void {
  if (paired.length !== listed.length) throw refuse(`${paired.length} logprobs for ${listed.length} tokens`);
  const at = paired.findIndex((id, i) => id !== listed[i]);
  if (at >= 0) throw refuse(`two ids for one token: ${JSON.stringify(listed[at])} and, with its logprob, ${JSON.stringify(paired[at])}`);
}

/** Whatever the trainer set: a policy version where it is an integer from 0, and nothing of ours otherwise (`default`). */
function toVersion(value: unknown): number | undefined {
  const version = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof version === 'number' && Number.isSafeInteger(version) && version >= 0 ? version : undefined;
}

function toFinishReason(type: string | undefined): FinishReason {
  if (type === 'stop' || type === 'length' || type === 'abort') return type;
  throw refuse(`${JSON.stringify(type)} as the finish reason`);
}
