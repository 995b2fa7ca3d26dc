// The fake SGLang server: /generate. SGLang does not run without a GPU, so each field names the function of SGLang 0.5.23 that writes
// it; file names are those of sglang/srt.

import {
  cutOutput,
  type FakeDialect,
  type FakeLimits,
  type FakeOutput,
  type FakeRefusal,
  type FakeRequest,
  type FakeServer,
  isAbsent,
  isRecord,
  isTokenIds,
  type Json,
} from './wire.ts';

/** sampling/sampling_params.py, SamplingParams: `max_new_tokens`. */
const defaultMaxTokens = 128;

export const sglangGenerate: FakeDialect = {
  engine: 'sglang',
  path: '/generate',
  defaultMaxTokens,
  parse(body, headers, limits) {
    // entrypoints/api_contract.py, generate_contract_error: the reason is a text, not an object.
    if (!isRecord(body)) return { status: 400, body: { error: 'the body is not a JSON object' } };
    const { input_ids: ids, sampling_params: sampling = {}, ...options } = body;
    if (!isTokenIds(ids) || ids.length === 0) return refuse('input_ids must be a list of at least one id');
    if (!isRecord(sampling)) return { status: 400, body: { error: 'sampling_params must be an object' } };
    const reason = findUnknownAdapter(options, limits) ?? findBadSampling(sampling) ?? findExcess(ids.length, sampling, limits);
    if (reason !== undefined) return refuse(reason);
    const maxTokens = typeof sampling.max_new_tokens === 'number' ? sampling.max_new_tokens : undefined;
    const id = typeof options.rid === 'string' ? options.rid : undefined;
    return {
      route: 'sglang',
      id,
      promptIds: Int32Array.from(ids),
      maxTokens,
      isStream: options.stream === true,
      sampling,
      options,
      headers,
    };
  },
  abortId: ({ id }) => id,
  reply: (request, output, server) => toReply(request, output, server, true),
  /** Each event has all tokens so far. managers/tokenizer_manager.py, _handle_batch_output: cumulative unless started otherwise. */
  events(request, { output, end, isLast }, server) {
    return [toReply(request, cutOutput(output, 0, end), server, isLast)];
  },
  /** entrypoints/http_server.py, serve_generate_request. */
  lastLine: 'data: [DONE]\n\n',
  /** managers/scheduler.py, _abort_on_queued_limit; as an error or an event by tokenizer_manager.py, _handle_abort_finish_reason. */
  busy(request, server) {
    const message = 'The request queue is full.';
    const finish_reason = { type: 'abort', status_code: 503, message };
    const event = toWaitingAbort(request, server, finish_reason);
    return { status: 503, body: toHttpError(503, message), event };
  },
  withoutOutput: ({ text, output_ids }) => ({ text, output_ids }),
  error: (status, message) => (status === 400 ? { error: { message } } : toHttpError(status, message)),
};

/**
 * A ValueError. entrypoints/http_server.py: _create_error_response for a whole reply, serve_generate_request for a stream, whose 200
 * is sent before the request is checked.
 */
function refuse(message: string): FakeRefusal {
  const error = { message, type: 'invalid_request_error', code: 400, retryable: false };
  return { status: 400, body: { error: { message } }, event: { error } };
}

/** An HTTPException. entrypoints/http_server.py, validation_exception_handler; openai/protocol.py, ErrorResponse. */
function toHttpError(code: number, message: string): Json {
  return { object: 'error', message, type: `${code}`, param: null, code };
}

/** managers/tokenizer_manager.py, _resolve_lora_path. */
function findUnknownAdapter({ lora_path: name }: Json, { adapters }: FakeLimits): string | undefined {
  if (isAbsent(name) || !adapters || adapters.includes(`${name}`)) return undefined;
  const loaded = adapters.map((one) => `'${one}'`).join(', ');
  return `Got LoRA adapter that has never been loaded: ${name}\nAll loaded adapters: dict_keys([${loaded}]).`;
}

/** sampling/sampling_params.py, SamplingParams.verify. */
function findBadSampling(sampling: Json): string | undefined {
  const { temperature = 1, top_p: topP = 1, top_k: topK = -1, repetition_penalty: penalty = 1, max_new_tokens: maxTokens = 1 } = sampling;
  if (!(Number(temperature) >= 0)) return `temperature must be a non-negative finite number, got ${temperature}.`;
  if (!(Number(topP) > 0 && Number(topP) <= 1)) return `top_p must be in (0, 1], got ${topP}.`;
  if (topK === 0) return 'top_k must be -1 (disable) or at least 1, got 0.';
  if (!(Number(penalty) > 0 && Number(penalty) <= 2)) return `repetition_penalty must be in (0, 2] (1.0 = no penalty), got ${penalty}.`;
  return Number(maxTokens) < 0 ? `max_new_tokens must be at least 0, got ${maxTokens}.` : undefined;
}

/** managers/tokenizer_manager.py, _validate_one_request. */
function findExcess(length: number, { max_new_tokens: sent }: Json, { contextTokens }: FakeLimits): string | undefined {
  if (length >= contextTokens) return `The input (${length} tokens) is longer than the model's context length (${contextTokens} tokens).`;
  const maxTokens = typeof sent === 'number' ? sent : defaultMaxTokens;
  if (length + maxTokens <= contextTokens) return undefined;
  const parts = `${length} tokens from the input messages and ${maxTokens} tokens for the completion`;
  return `Requested token count exceeds the model's maximum context length of ${contextTokens} tokens. You requested a total of ${length + maxTokens} tokens: ${parts}. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`;
}

/** managers/tokenizer_manager.py, _handle_batch_output, unless a comment names another function. */
function toReply(request: FakeRequest, output: FakeOutput, server: FakeServer, isLast: boolean): Json {
  const { options } = request;
  const { tokenIds, promptTokens, weightVersions, routedExperts } = output;
  if (output.finishReason === 'abort' && isLast && tokenIds.length === 0)
    return toWaitingAbort(request, server, { type: 'abort', message: 'Abort in waiting queue' });
  return {
    text: server.decode(tokenIds),
    output_ids: tokenIds,
    meta_info: {
      id: options.rid ?? `fake-${server.index}`,
      finish_reason: isLast ? toFinishReason(output) : null,
      prompt_tokens: promptTokens,
      weight_version: weightVersions.at(-1)?.version ?? server.weightVersion,
      num_retractions: 0,
      ...toLogprobs(request, output),
      ...toMask(request, output),
      reasoning_tokens: 0,
      completion_tokens: tokenIds.length,
      cached_tokens: Math.max(0, promptTokens - 1),
      // utils/weight_versions.py, add_weight_versions_to_meta_info: only when the request has finished.
      ...(isLast ? { weight_versions: weightVersions, e2e_latency: 0.01 } : {}),
      ...(options.return_routed_experts === true && routedExperts && isLast
        ? { routed_experts: toBase64(routedExperts.subarray(4 * Number(options.routed_experts_start_len ?? 0))) }
        : {}),
      // _wait_one_response, on the first event or the whole reply.
      response_sent_to_client_ts: 1_700_000_000.5,
    },
  };
}

/** A request that is aborted before its first token. managers/tokenizer_manager.py, _handle_abort_req: it has no prompt_tokens. */
function toWaitingAbort(request: FakeRequest, { index, weightVersion }: FakeServer, finish_reason: Json): Json {
  const meta_info = {
    id: request.options.rid ?? `fake-${index}`,
    finish_reason,
    weight_version: weightVersion,
    e2e_latency: 0.01,
    // managers/scheduler.py, _make_abort_req.
    weight_versions: [{ version: weightVersion, start: 0, end: 0 }],
    ...toLogprobs(request, { tokenIds: [], logprobs: [] }),
    completion_tokens: 0,
  };
  return { text: '', output_ids: [], meta_info };
}

/** managers/tokenizer_manager.py, add_logprob_to_meta_info: [logprob, id, text or null]. */
function toLogprobs({ options }: FakeRequest, { tokenIds, logprobs }: Pick<FakeOutput, 'tokenIds' | 'logprobs'>): Json {
  if (options.return_logprob !== true || logprobs === undefined) return {};
  const output_token_logprobs = logprobs.map((logprob, i) => [logprob, tokenIds[i], null]);
  return { input_token_logprobs: [], output_token_logprobs, output_token_logprobs_length: output_token_logprobs.length };
}

/** managers/tokenizer_manager.py, _handle_batch_output. */
function toMask({ options }: FakeRequest, { samplingMask, logprobs = [] }: FakeOutput): Json {
  if (options.return_sampling_mask !== true || !samplingMask) return {};
  return {
    output_token_sampling_mask: samplingMask,
    output_token_sampling_logprobs: logprobs,
    output_token_sampling_mask_length: samplingMask.length,
  };
}

function toBase64(numbers: Int32Array): string {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString('base64');
}

/** managers/schedule_batch.py: FINISH_MATCHED_TOKEN, FINISH_LENGTH and FINISH_ABORT. */
function toFinishReason({ finishReason, tokenIds, stoppedBy }: FakeOutput): Json {
  switch (finishReason) {
    case 'stop':
      return { type: 'stop', matched: stoppedBy ?? tokenIds.at(-1) };
    case 'length':
      return { type: 'length', length: tokenIds.length };
    case 'abort':
      return { type: 'abort', message: 'Aborted', status_code: null, err_type: null };
  }
}

/** entrypoints/http_server.py, available_models; openai/protocol.py, ModelCard. */
export function toSglangModels(model: string, maxModelLen: number): Json {
  const card = {
    id: model,
    object: 'model',
    created: 1_700_000_000,
    owned_by: 'sglang',
    root: model,
    parent: null,
    max_model_len: maxModelLen,
  };
  return { object: 'list', data: [card] };
}

/** entrypoints/http_server.py, server_info: the last fields of it. */
export function toSglangServerInfo(startedAt: number, version = '0.5.23'): Json {
  return { startup_time: startedAt, internal_states: [{}], version, frontend: 'python' };
}
