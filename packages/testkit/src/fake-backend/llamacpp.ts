// The fake llama.cpp server: /completion, without a probability for a token that ends inside a character.

import { type FakeDialect, type FakeOutput, type FakeServer, type Json, parseIds, parseMaxTokens } from './wire.ts';

const stopTypes = { stop: 'eos', length: 'limit', abort: 'none' } as const;
/** What llama.cpp writes for the logarithm of 0: the lowest float32. */
const lowest = -3.4028234663852886e38;

export const llamacppCompletion: FakeDialect = {
  path: '/completion',
  parse(body, headers) {
    const { prompt, ...sampling } = body;
    const promptIds = parseIds('prompt', prompt);
    if (typeof promptIds === 'string') return promptIds;
    const asked = sampling.n_predict === -1 ? undefined : sampling.n_predict;
    const maxTokens = parseMaxTokens('n_predict', asked);
    if (typeof maxTokens === 'string') return maxTokens;
    if (Number(sampling.repeat_last_n) < 0) return "Field 'repeat_last_n': Value must be between 0 <= value <= 2147483647, but got -1";
    return { route: 'llamacpp', promptIds, maxTokens, sampling, options: {}, headers };
  },
  reply({ sampling }, output, server) {
    const { tokenIds, promptTokens, finishReason, text } = output;
    const wantsProbabilities = typeof sampling.n_probs === 'number' && sampling.n_probs > 0 && output.logprobs !== undefined;
    const reply: Json = {
      index: 0,
      content: text,
      tokens: sampling.return_tokens === true ? tokenIds : [],
      id_slot: 0,
      stop: true,
      model: server.model,
      tokens_predicted: tokenIds.length,
      tokens_evaluated: promptTokens,
      generation_settings: sampling,
      prompt: 'the prompt as text',
      has_new_line: false,
      truncated: false,
      stop_type: stopTypes[finishReason],
      stopping_word: '',
      tokens_cached: promptTokens + tokenIds.length - 1,
      timings: { cache_n: promptTokens - 1, prompt_n: 1, predicted_n: tokenIds.length },
      ...(wantsProbabilities ? { completion_probabilities: toProbabilities(output, sampling, server) } : {}),
    };
    const { response_fields: wanted } = sampling;
    return Array.isArray(wanted) && wanted.length > 0
      ? Object.fromEntries(Object.entries(reply).filter(([name]) => wanted.includes(name)))
      : reply;
  },
  findExcess: ({ promptIds: { length } }, contextTokens) =>
    length < contextTokens
      ? undefined
      : `request (${length} tokens) exceeds the available context size (${contextTokens} tokens), try increasing it`,
  withoutOutput: ({ tokens: _, ...reply }) => reply,
  error(code, message) {
    const types: Record<number, string> = { 400: 'invalid_request_error', 503: 'unavailable_error' };
    return { error: { code, message, type: types[code] ?? 'server_error' } };
  },
};

function toProbabilities({ tokenIds, logprobs = [] }: FakeOutput, sampling: Readonly<Json>, server: FakeServer): Json[] {
  const entries: Json[] = [];
  let begin = 0;
  for (const [i, logprob] of logprobs.entries()) {
    if (server.endsInside(tokenIds.slice(begin, i + 1))) continue;
    begin = i + 1;
    entries.push(toProbability(tokenIds[i], logprob === -9999 ? lowest : logprob, sampling.post_sampling_probs === true));
  }
  return entries;
}

function toProbability(id: unknown, logprob: unknown, isAfterSampling: boolean): Json {
  const token = { id, token: '', bytes: [] };
  if (isAfterSampling) return { ...token, prob: Math.exp(Number(logprob)), top_probs: [] };
  return { ...token, logprob, top_logprobs: [{ ...token, logprob }] };
}
