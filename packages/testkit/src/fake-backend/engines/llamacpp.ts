// The fake llama-server: /completion, field by field as recorded from build 11669, without a probability for a token that ends inside a
// character.

import {
  cutOutput,
  type FakeDialect,
  type FakeLimits,
  type FakeOutput,
  type FakePart,
  type FakeRefusal,
  type FakeRequest,
  type FakeServer,
  isAbsent,
  isRecord,
  isTokenIds,
  type Json,
} from './wire.ts';

const stopTypes = { stop: 'eos', length: 'limit', abort: 'none' } as const;
/** What llama.cpp writes for the logarithm of 0: the lowest float32. */
const lowest = -3.4028234663852886e38;

export const llamacppCompletion: FakeDialect = {
  engine: 'llamacpp',
  path: '/completion',
  parse(body, headers, limits) {
    if (!isRecord(body)) return refuse(`[json.exception.type_error.304] cannot use at() with ${typeof body}`);
    const { prompt: ids, ...sampling } = body;
    const wrong = findWrong(ids, sampling, limits);
    if (wrong) return wrong;
    const promptIds = Int32Array.from(isTokenIds(ids) ? ids : []);
    const maxTokens = typeof sampling.n_predict === 'number' && sampling.n_predict >= 0 ? sampling.n_predict : undefined;
    const isStream = sampling.stream === true;
    return { route: 'llamacpp', id: undefined, promptIds, maxTokens, isStream, sampling, options: {}, headers };
  },
  reply(request, output, server) {
    const { sampling } = request;
    const whole = { ...toWhole(request, output, server), ...toProbabilities(output, request, server) };
    const { response_fields: wanted } = sampling;
    return Array.isArray(wanted) && wanted.length > 0
      ? Object.fromEntries(Object.entries(whole).filter(([name]) => wanted.includes(name)))
      : whole;
  },
  /** The last event has all counts and no tokens. */
  events(request, part, server) {
    const delta = toDelta(request, part, server);
    return part.isLast ? [delta, { ...toWhole(request, part.output, server), content: '', tokens: [] }] : [delta];
  },
  lastLine: '',
  withoutOutput: ({ tokens: _, ...reply }) => reply,
  error: toLlamaError,
};

function toLlamaError(code: number, message: string): Json {
  const types: Record<number, string> = { 400: 'invalid_request_error', 503: 'unavailable_error' };
  return { error: { code, message, type: types[code] ?? 'server_error' } };
}

function refuse(message: string): FakeRefusal {
  return { status: 400, body: toLlamaError(400, message) };
}

function findWrong(ids: unknown, sampling: Json, { vocabularySize, contextTokens }: FakeLimits): FakeRefusal | undefined {
  const { n_predict: asked, repeat_last_n: lastN } = sampling;
  if (!isAbsent(asked) && typeof asked !== 'number')
    return refuse(`Field 'n_predict': [json.exception.type_error.302] type must be number, but is ${typeof asked}`);
  if (Number(lastN) < 0) return refuse(`Field 'repeat_last_n': Value must be between 0 <= value <= 2147483647, but got ${lastN}`);
  if (!isTokenIds(ids) || ids.length === 0) return refuse('"prompt" must not be empty');
  if (ids.some((id) => id >= vocabularySize)) return refuse('Prompt contains invalid tokens');
  if (ids.length < contextTokens) return undefined;
  const message = `request (${ids.length} tokens) exceeds the available context size (${contextTokens} tokens), try increasing it`;
  const error = { code: 400, message, type: 'exceed_context_size_error', n_prompt_tokens: ids.length, n_ctx: contextTokens };
  return { status: 400, body: { error } };
}

function toWhole({ sampling, promptIds }: FakeRequest, output: FakeOutput, { model, contextTokens, decode }: FakeServer): Json {
  const { tokenIds, promptTokens, finishReason } = output;
  const wanted = sampling.response_fields;
  const withPrompt = !Array.isArray(wanted) || wanted.length === 0 || wanted.includes('prompt');
  const content = decode(finishReason === 'stop' ? tokenIds.slice(0, -1) : tokenIds);
  return {
    index: 0,
    content,
    tokens: sampling.return_tokens === true ? tokenIds : [],
    id_slot: 0,
    stop: true,
    model,
    tokens_predicted: tokenIds.length,
    tokens_evaluated: promptTokens,
    generation_settings: toSettings(sampling),
    prompt: withPrompt ? decode(Array.from(promptIds)) : '',
    has_new_line: content.includes('\n'),
    truncated: finishReason === 'length' && promptTokens + tokenIds.length >= contextTokens,
    stop_type: stopTypes[finishReason],
    stopping_word: '',
    tokens_cached: promptTokens + tokenIds.length - 1,
    timings: {
      cache_n: promptTokens - 1,
      prompt_n: 1,
      prompt_ms: 0,
      prompt_per_token_ms: 0,
      prompt_per_second: 0,
      predicted_n: tokenIds.length,
      predicted_ms: 0,
      predicted_per_token_ms: 0,
      predicted_per_second: 0,
    },
  };
}

function toDelta(request: FakeRequest, { output, begin, end }: FakePart, server: FakeServer): Json {
  const part = cutOutput(output, begin, end);
  return {
    index: 0,
    content: server.decode(part.tokenIds),
    tokens: part.tokenIds,
    stop: false,
    id_slot: -1,
    tokens_predicted: end,
    tokens_evaluated: output.promptTokens,
    ...toProbabilities(part, request, server),
  };
}

function toProbabilities({ tokenIds, logprobs }: FakeOutput, { sampling }: FakeRequest, { decode }: FakeServer): Json {
  const { n_probs: count, post_sampling_probs: isAfterSampling } = sampling;
  if (typeof count !== 'number' || count <= 0 || logprobs === undefined) return {};
  const entries: Json[] = [];
  let begin = 0;
  for (const [i, logprob] of logprobs.entries()) {
    const text = decode(tokenIds.slice(begin, i + 1));
    if (text.endsWith('\ufffd')) continue;
    begin = i + 1;
    const token = /^<\|[^|]+\|>$/.test(text) ? '' : text; // control tokens have no text
    const entry = { id: tokenIds[i], token, bytes: [...Buffer.from(token)] };
    const known = logprob === -9999 ? lowest : logprob;
    const others = Array.from({ length: count - 1 }, (_, k) => ({
      ...entry,
      id: Number(tokenIds[i]) + k + 1,
      logprob: Number(known) - k - 1,
    }));
    entries.push(
      isAfterSampling === true
        ? { ...entry, prob: Math.exp(Number(known)), top_probs: [] }
        : { ...entry, logprob: known, top_logprobs: [{ ...entry, logprob: known }, ...others] },
    );
  }
  return { completion_probabilities: entries };
}

/** The defaults of llama-server, and what the request set. */
function toSettings(sampling: Readonly<Json>): Json {
  const { n_predict: maxTokens = -1 } = sampling;
  const set = Object.entries(sampling).filter(([name]) => name in defaultSettings);
  return { ...defaultSettings, max_tokens: maxTokens, ...Object.fromEntries(set) };
}

const defaultSettings: Readonly<Json> = {
  seed: 4_294_967_295,
  temperature: 0.8,
  dynatemp_range: 0,
  dynatemp_exponent: 1,
  top_k: 40,
  top_p: 0.95,
  min_p: 0.05,
  top_n_sigma: -1,
  xtc_probability: 0,
  xtc_threshold: 0.1,
  typical_p: 1,
  repeat_last_n: 64,
  repeat_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  dry_multiplier: 0,
  dry_base: 1.75,
  dry_allowed_length: 2,
  dry_penalty_last_n: 64,
  dry_sequence_breakers: ['\n', ':', '"', '*'],
  mirostat: 0,
  mirostat_tau: 5,
  mirostat_eta: 0.1,
  adaptive_target: -1,
  adaptive_decay: 0.9,
  stop: [],
  max_tokens: -1,
  n_predict: -1,
  n_keep: 0,
  n_discard: 0,
  ignore_eos: false,
  stream: false,
  logit_bias: [],
  n_probs: 0,
  min_keep: 0,
  grammar: '',
  grammar_lazy: false,
  grammar_triggers: [],
  preserved_tokens: [],
  chat_format: 'Content-only',
  reasoning_format: 'deepseek',
  reasoning_in_content: false,
  generation_prompt: '',
  samplers: ['penalties', 'dry', 'top_n_sigma', 'top_k', 'typ_p', 'top_p', 'min_p', 'xtc', 'temperature'],
  'speculative.types': 'none',
  timings_per_token: false,
  post_sampling_probs: false,
  backend_sampling: false,
  lora: [],
};

export const llamaNotFound: Json = { error: { message: 'File Not Found', type: 'not_found_error', code: 404 } };

export function toLlamaModels(model: string, contextTokens: number, vocabularySize: number): Json {
  const details = { parent_model: '', format: 'gguf', family: '', families: [''], parameter_size: '', quantization_level: '' };
  const about = { modified_at: '', size: '', digest: '', type: 'model', description: '', tags: [''], capabilities: ['completion'] };
  const meta = { vocab_type: 2, n_vocab: vocabularySize, n_ctx: contextTokens, n_ctx_train: 8192, n_embd: 576, n_params: 134_515_008 };
  const card = {
    id: model,
    aliases: [model],
    tags: [],
    object: 'model',
    architecture: { input_modalities: ['text'], output_modalities: ['text'] },
    created: 1_700_000_000,
    owned_by: 'llamacpp',
    meta: { ...meta, size: 96_576_768, ftype: 'Q4_1' },
  };
  return { models: [{ name: model, model, ...about, parameters: '', details }], object: 'list', data: [card] };
}
