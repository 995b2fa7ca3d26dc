// The fake vLLM server: its two token routes, field by field.

import {
  type FakeDialect,
  type FakeOutput,
  type FakeRequest,
  isRecord,
  type Json,
  parseIds,
  parseMaxTokens,
  splitOutput,
  toWeightSpans,
} from './wire.ts';

export const vllmGenerate: FakeDialect = {
  path: '/inference/v1/generate',
  parse(body, headers) {
    const { token_ids, sampling_params: sampling, ...options } = body;
    if (!isRecord(sampling)) return 'sampling_params must be an object';
    return parseParts('generate', { ids: parseIds('token_ids', token_ids), sampling, options, headers });
  },
  reply(request, output, { model, index, weightVersion }) {
    const given = request.headers['x-request-id'] ?? `fake-${index}`;
    const choices = [toGenerateChoice(request, output, weightVersion)];
    return { request_id: `generate-tokens-${given}`, ...toCommon(output, model), choices, prompt_logprobs: null };
  },
  events(request, output, { index, weightVersion }) {
    if (request.options.stream !== true) return undefined;
    const request_id = `generate-tokens-${request.headers['x-request-id'] ?? `fake-${index}`}`;
    const weightVersions = output.weightVersions ?? toWeightSpans([{ version: weightVersion, start: 0 }], output.tokenIds.length);
    const toChoices = (part: FakeOutput) => [toGenerateChoice(request, { ...part, weightVersions }, weightVersion)];
    return toEvents(request, { asked: request.options, output, toChoices }).map((event) => ({ request_id, ...event }));
  },
  withoutOutput: (reply) => ({ ...reply, choices: [] }),
  findExcess: ({ promptIds: { length } }, contextTokens) =>
    length < contextTokens
      ? undefined
      : `The decoder prompt (length ${length}) is longer than the maximum model length of ${contextTokens}. Make sure that \`max_model_len\` is no smaller than the number of text tokens.`,
  checksLate: true,
  error: toVllmError,
};

/** Returns 16 tokens by default. */
export const vllmCompletions: FakeDialect = {
  path: '/v1/completions',
  defaultMaxTokens: 16,
  parse(body, headers) {
    const { prompt, ...sampling } = body;
    return parseParts('completions', { ids: parseIds('prompt', prompt), sampling, options: {}, headers });
  },
  reply(request, output, { model, index }) {
    const given = request.headers['x-request-id'] ?? `fake-${index}`;
    const choices = [toCompletionsChoice(request, output)];
    return { id: `cmpl-${given}`, object: 'text_completion', ...toCommon(output, model), choices };
  },
  events(request, output, { model, index }) {
    if (request.sampling.stream !== true) return undefined;
    const common = { id: `cmpl-fake-${index}`, object: 'text_completion', created: 1_700_000_000, model };
    const toChoices = (part: FakeOutput) => [toCompletionsChoice(request, part)];
    return toEvents(request, { asked: request.sampling, output, toChoices }).map((event) => ({ ...common, ...event }));
  },
  withoutOutput: (reply) => ({ ...reply, choices: [] }),
  findExcess: ({ promptIds: { length } }, contextTokens) =>
    length < contextTokens
      ? undefined
      : `This model's maximum context length is ${contextTokens} tokens. However, your prompt contains ${length} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=${length})`,
  error: toVllmError,
};

/** By which a request is aborted. */
export function toVllmId(route: FakeRequest['route'], { 'x-request-id': given }: FakeRequest['headers']): string {
  return route === 'generate' ? `generate-tokens-${given}` : `cmpl-${given}-0`;
}

export function toVllmError(status: number, message: string): Json {
  const type = status === 404 ? 'NotFoundError' : status < 500 ? 'BadRequestError' : 'InternalServerError';
  return { error: { message, type, param: null, code: status } };
}

/** Of `vllm serve` 0.32.0 without --enable-scale-out, as recorded. */
export const scaleOutDisabled: Json = {
  error: {
    message: 'Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.',
    type: 'PermissionDeniedError',
    param: null,
    code: 403,
  },
};

export function toVllmModels(model: string, maxModelLen: number): Json {
  const card = {
    id: model,
    object: 'model',
    created: 1_700_000_000,
    owned_by: 'vllm',
    root: model,
    parent: null,
    max_model_len: maxModelLen,
  };
  return { object: 'list', data: [card] };
}

export function toVllmMetrics(model: string, counts: { running: number; sampled: number; ended: number; ranks?: number }): string {
  const rows = [
    ['gauge', 'num_requests_running', counts.running],
    ['gauge', 'num_requests_waiting', 0],
    ['gauge', 'kv_cache_usage_perc', 0],
    ['counter', 'generation_tokens_total', counts.sampled],
    ['counter', 'request_success_total', counts.ended],
  ];
  const engines = Array.from({ length: counts.ranks ?? 1 }, (_, engine) => engine);
  return rows
    .map(([kind, name, value]) => {
      const values = engines.map((engine) => `vllm:${name}{engine="${engine}",model_name="${model}"} ${value}\n`);
      return `# TYPE vllm:${name} ${kind}\n${values.join('')}`;
    })
    .join('');
}

function parseParts(
  route: 'generate' | 'completions',
  { ids, ...parts }: Pick<FakeRequest, 'sampling' | 'options' | 'headers'> & { readonly ids: Int32Array | string },
): FakeRequest | string {
  if (typeof ids === 'string') return ids;
  const maxTokens = parseMaxTokens('max_tokens', parts.sampling.max_tokens);
  if (typeof maxTokens === 'string') return maxTokens;
  if (parts.sampling.n !== undefined && parts.sampling.n !== 1) return 'the fake backend returns only one choice';
  return { route, promptIds: ids, maxTokens, ...parts };
}

/** Each event has only the new tokens; the usage comes last, in its own event, on demand. */
function toEvents(
  request: FakeRequest,
  { asked, output, toChoices }: { asked: Readonly<Json>; output: FakeOutput; toChoices: (part: FakeOutput) => Json[] },
): Json[] {
  const onlyLast = { finish_reason: null, weight_versions: null, routed_experts: null };
  const events: Json[] = splitOutput(request, output, { isCumulative: false }).map(({ isLast, ...part }) => ({
    choices: toChoices(part).map((choice) => ({ ...choice, ...(isLast ? {} : keepKnown(onlyLast, choice)) })),
  }));
  const withUsage = isRecord(asked.stream_options) && asked.stream_options.include_usage === true;
  return withUsage ? [...events, { choices: [], usage: toCommon(output, '').usage }] : events;
}

/** The fields that the choice has. */
function keepKnown(fields: Json, choice: Json): Json {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name in choice));
}

function toCommon({ promptTokens, tokenIds }: FakeOutput, model: string): Json {
  const completion = tokenIds.length;
  return {
    created: 1_700_000_000,
    model,
    usage: {
      prompt_tokens: promptTokens,
      total_tokens: promptTokens + completion,
      completion_tokens: completion,
      prompt_tokens_details: null,
    },
    kv_transfer_params: null,
  };
}

function toGenerateChoice({ sampling, promptIds }: FakeRequest, output: FakeOutput, weightVersion: string): Json {
  const { tokenIds, logprobs, finishReason, routedExperts } = output;
  const content = logprobs?.map((logprob, i) => {
    const entry = { token_id: tokenIds[i], logprob, rank: 1 };
    return { ...entry, top_logprobs: [entry] };
  });
  return {
    index: 0,
    logprobs: content === undefined || isAbsent(sampling.logprobs) ? null : { content },
    finish_reason: finishReason,
    token_ids: tokenIds,
    routed_experts: routedExperts === undefined ? null : toExpertsText(routedExperts, sampling, promptIds),
    sampling_mask: null,
    weight_versions: output.weightVersions ?? toWeightSpans([{ version: weightVersion, start: 0 }], tokenIds.length),
  };
}

/** Tokens are named by their ids only on demand; otherwise by a text that is not an id. */
function toCompletionsChoice(
  { sampling, promptIds }: FakeRequest,
  { tokenIds, logprobs, finishReason, text, routedExperts }: FakeOutput,
): Json {
  const withIds = sampling.return_token_ids === true;
  const asIds = sampling.return_tokens_as_token_ids === true;
  const tokens = tokenIds.map((id) => (typeof id === 'number' && asIds ? `token_id:${id}` : `<${id}>`));
  return {
    index: 0,
    text,
    logprobs:
      logprobs === undefined || isAbsent(sampling.logprobs)
        ? null
        : {
            text_offset: tokens.map(() => 0),
            token_logprobs: logprobs,
            tokens,
            top_logprobs: tokens.map((token, i) => ({ [token]: logprobs[i] })),
          },
    finish_reason: finishReason,
    stop_reason: null,
    token_ids: withIds ? tokenIds : null,
    prompt_logprobs: null,
    prompt_token_ids: withIds ? Array.from(promptIds) : null,
    ...(routedExperts === undefined ? {} : { routed_experts: toExpertsText(routedExperts, sampling, promptIds) }),
  };
}

/** Without the first rows of the prompt, if the request asks to leave them out. */
function toExpertsText(experts: Int32Array, { routed_experts_prompt_start: start = 0 }: Readonly<Json>, promptIds: Int32Array): string {
  return toNpy(experts.slice(4 * Math.min(Number(start), promptIds.length))).toString('base64');
}

/** tokens × 2 layers × 2 experts. */
function toNpy(experts: Int32Array): Buffer {
  const head = `{'descr': '<i4', 'fortran_order': False, 'shape': (${experts.length / 4}, 2, 2), }`.padEnd(117).concat('\n');
  const length = Buffer.alloc(2);
  length.writeUInt16LE(head.length);
  return Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), length, Buffer.from(head), Buffer.from(experts.buffer)]);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
