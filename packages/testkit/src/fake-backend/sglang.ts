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
        weight_version: weightVersion,
        total_retractions: 0,
        ...(withLogprobs ? toLogprobs(tokenIds, logprobs) : {}),
        completion_tokens: tokenIds.length,
        cached_tokens: Math.max(0, promptTokens - 1),
        e2e_latency: 0.01,
        // From its source: TokenizerManager._handle_batch_output.
        ...(options.return_sampling_mask === true && output.samplingMask
          ? { output_token_sampling_mask: output.samplingMask, output_token_sampling_mask_length: output.samplingMask.length }
          : {}),
        ...(options.return_routed_experts === true && output.routedExperts
          ? { routed_experts: Buffer.from(output.routedExperts.buffer).toString('base64') }
          : {}),
      },
    };
  },
  /** Each event has all tokens so far. */
  events(request, output, server) {
    if (request.options.stream !== true) return undefined;
    return splitOutput(output, { isCumulative: true }).map(({ isLast, ...part }) => {
      const reply = sglangGenerate.reply(request, part, server);
      return isLast || !isRecord(reply.meta_info) ? reply : { ...reply, meta_info: { ...reply.meta_info, finish_reason: null } };
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
  /** From its source: TokenizerManager._resolve_lora_path. */
  findAdapterFault({ options: { lora_path: name } }, { adapters }) {
    if (name === undefined || adapters.some((adapter) => adapter === name)) return undefined;
    const message = `Got LoRA adapter that has never been loaded: ${name}\nAll loaded adapters: dict_keys([${adapters.map((one) => `'${one}'`).join(', ')}]).`;
    return { status: 400, message };
  },
  error: (_status, message) => ({ error: { message } }),
};

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
