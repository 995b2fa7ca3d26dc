// The fake SGLang server: /generate, with logprobs only on demand and 128 tokens by default.

import { type FakeDialect, type FakeOutput, isRecord, type Json, parseIds, parseMaxTokens, splitOutput } from './wire.ts';

export const sglangGenerate: FakeDialect = {
  path: '/generate',
  defaultMaxTokens: 128,
  parse(body, headers) {
    const { input_ids, sampling_params: sampling = {}, ...options } = body;
    const promptIds = parseIds('input_ids', input_ids);
    if (typeof promptIds === 'string') return promptIds;
    if (!isRecord(sampling)) return 'sampling_params must be an object';
    if (sampling.top_k === 0) return 'top_k must be -1 (disable) or at least 1, got 0.';
    const maxTokens = parseMaxTokens('max_new_tokens', sampling.max_new_tokens);
    if (typeof maxTokens === 'string') return maxTokens;
    return { route: 'sglang', promptIds, maxTokens, sampling, options, headers };
  },
  reply({ options }, output, { index, weightVersion }) {
    const { tokenIds, logprobs, promptTokens, text } = output;
    const id = options.rid ?? `fake-${index}`;
    const finish_reason = toFinishReason(output);
    if (output.finishReason === 'abort' && tokenIds.length === 0)
      return { text: '', meta_info: { id, finish_reason, prompt_tokens: 0, completion_tokens: 0 } };
    const withLogprobs = options.return_logprob === true && logprobs !== undefined;
    return {
      text,
      output_ids: tokenIds,
      meta_info: {
        id,
        finish_reason,
        prompt_tokens: promptTokens,
        // From its source: add_weight_versions_to_meta_info. The spans are only in the last event.
        weight_versions: output.weightVersions ?? [{ version: weightVersion, start: 0, end: tokenIds.length }],
        weight_version: output.weightVersions?.at(-1)?.version ?? weightVersion,
        total_retractions: 0,
        ...(withLogprobs ? toLogprobs(tokenIds, logprobs) : {}),
        completion_tokens: tokenIds.length,
        cached_tokens: Math.max(0, promptTokens - 1),
        e2e_latency: 0.01,
        ...(options.return_routed_experts === true && output.routedExperts
          ? { routed_experts: toBase64(output.routedExperts.subarray(4 * Number(options.routed_experts_start_len ?? 0))) }
          : {}),
      },
    };
  },
  /** Each event has all tokens so far. */
  events(request, output, server) {
    if (request.options.stream !== true) return undefined;
    return splitOutput(request, output, { isCumulative: true }).map(({ isLast, ...part }) => {
      const reply = sglangGenerate.reply(request, part, server);
      if (isLast || !isRecord(reply.meta_info)) return reply;
      const { weight_versions: _, ...meta } = reply.meta_info;
      return { ...reply, meta_info: { ...meta, finish_reason: null } };
    });
  },
  withoutOutput: ({ text, output_ids }) => ({ text, output_ids }),
  /** From its source: TokenizerManager._validate_one_request. */
  findExcess({ promptIds: { length }, maxTokens = 128 }, contextTokens) {
    if (length >= contextTokens) return `The input (${length} tokens) is longer than the model's context length (${contextTokens} tokens).`;
    if (length + maxTokens < contextTokens) return undefined;
    const parts = `${length} tokens from the input messages and ${maxTokens} tokens for the completion`;
    return `Requested token count exceeds the model's maximum context length of ${contextTokens} tokens. You requested a total of ${length + maxTokens} tokens: ${parts}. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`;
  },
  error: (_status, message) => ({ error: { message } }),
};

function toBase64(numbers: Int32Array): string {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString('base64');
}

function toLogprobs(tokenIds: readonly unknown[], logprobs: readonly unknown[]): Json {
  const output_token_logprobs = logprobs.map((logprob, i) => [logprob, tokenIds[i], null]);
  return { input_token_logprobs: [], output_token_logprobs, output_token_logprobs_length: output_token_logprobs.length };
}

function toFinishReason({ finishReason, tokenIds }: FakeOutput): Json {
  switch (finishReason) {
    case 'stop':
      return { type: 'stop', matched: tokenIds.at(-1) };
    case 'length':
      return { type: 'length', length: tokenIds.length };
    case 'abort':
      return {
        type: 'abort',
        message: tokenIds.length === 0 ? 'Abort before prefill' : 'Abort in the middle',
        status_code: null,
        err_type: null,
      };
  }
}
