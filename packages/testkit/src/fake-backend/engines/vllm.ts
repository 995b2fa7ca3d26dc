// The fake vLLM server: its two token routes, field by field. They are as recorded from vLLM 0.32.0.

import { checkCompletions, checkGenerate, toVllmError } from './vllm-checks.ts';
import { cutOutput, type FakeDialect, type FakeOutput, type FakePart, type FakeRequest, isAbsent, isRecord, type Json } from './wire.ts';

export const vllmGenerate: FakeDialect = {
  engine: 'vllm',
  path: '/inference/v1/generate',
  parse: checkGenerate,
  abortId: ({ id }) => `generate-tokens-${id}`,
  reply(request, output, { model, index }) {
    const { promptIds, sampling, options } = request;
    return {
      request_id: toGenerateId(request, index),
      model,
      created,
      usage: toUsage(output),
      prompt_logprobs: toPromptLogprobs(promptIds, sampling, () => null),
      prompt_token_id_logprobs: null,
      prompt_token_ids: options.return_token_ids === true ? Array.from(promptIds) : null,
      mm_placeholders: null,
      metrics: null,
      kv_transfer_params: null,
      ec_transfer_params: null,
      output_mode: 'tokens',
      choices: [toGenerateChoice(request, output)],
    };
  },
  events(request, part, { index }) {
    const head = { request_id: toGenerateId(request, index), output_mode: 'tokens' };
    const { isLast, output } = part;
    const delta = cutOutput(output, part.begin, part.end);
    const choice = toGenerateChoice(request, delta);
    const unfinished = { ...choice, finish_reason: null, stop_reason: null, routed_experts: null, weight_versions: null };
    const event = { ...head, usage: null, choices: [isLast ? choice : unfinished] };
    return isLast && wantsUsage(request.options) ? [event, { ...head, usage: toStreamUsage(output), choices: [] }] : [event];
  },
  lastLine: 'data: [DONE]\n\n',
  busy: () => ({ status: 503, body: busyError }),
  withoutOutput: (reply) => ({ ...reply, choices: [] }),
  error: toVllmError,
};

/** Returns 16 tokens by default. */
export const vllmCompletions: FakeDialect = {
  engine: 'vllm',
  path: '/v1/completions',
  defaultMaxTokens: 16,
  parse: checkCompletions,
  abortId: ({ id }) => `cmpl-${id}-0`,
  reply(request, output, { model, index, decode }) {
    const { promptIds, sampling } = request;
    const choice = {
      ...toCompletionsChoice(request, { output, begin: 0, end: output.tokenIds.length, isLast: true }, decode),
      prompt_logprobs: toPromptLogprobs(promptIds, sampling, (id) => decode([id])),
      prompt_token_ids: sampling.return_token_ids === true ? Array.from(promptIds) : null,
      routed_experts: toExpertsText(output.routedExperts, sampling, promptIds),
    };
    return {
      id: toCompletionsId(request, index),
      object: 'text_completion',
      created,
      model,
      choices: [choice],
      service_tier: null,
      system_fingerprint: fingerprint,
      usage: toUsage(output),
      kv_transfer_params: null,
      ec_transfer_params: null,
      metrics: null,
    };
  },
  events(request, part, { model, index, decode }) {
    const head = { id: toCompletionsId(request, index), object: 'text_completion', created, model };
    const { isLast, output, begin } = part;
    const withPrompt = request.sampling.return_token_ids === true && begin === 0;
    const choice = {
      ...toCompletionsChoice(request, part, decode),
      prompt_token_ids: withPrompt ? Array.from(request.promptIds) : null,
      ...(isLast && output.routedExperts
        ? { routed_experts: toExpertsText(output.routedExperts, request.sampling, request.promptIds) }
        : {}),
    };
    const event = { ...head, choices: [choice] };
    if (!isLast || !wantsUsage(request.sampling)) return [event];
    return [event, { ...head, choices: [], usage: toStreamUsage(output), system_fingerprint: fingerprint }];
  },
  lastLine: 'data: [DONE]\n\n',
  busy: () => ({ status: 503, body: busyError }),
  withoutOutput: (reply) => ({ ...reply, choices: [] }),
  error: toVllmError,
};

const created = 1_700_000_000;
const fingerprint = 'vllm-0';

/** Of a server that was started with --max-num-queued-reqs. */
const busyError = toVllmError(
  503,
  'The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.',
);

/** Of `vllm serve` without --enable-scale-out. */
export const scaleOutDisabled: Json = toVllmError(
  403,
  'Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.',
);

/** Of a server whose engine process has died. */
export const engineDead: Json = toVllmError(500, 'EngineCore encountered an issue. See stack trace (above) for the root cause.');

export function toVllmModels(model: string, maxModelLen: number): Json {
  const card = {
    id: model,
    object: 'model',
    created,
    owned_by: 'vllm',
    root: `/models/${model}`,
    parent: null,
    max_model_len: maxModelLen,
  };
  const permission = {
    id: 'modelperm-0',
    object: 'model_permission',
    created,
    allow_create_engine: false,
    allow_sampling: true,
    allow_logprobs: true,
    allow_search_indices: false,
    allow_view: true,
    allow_fine_tuning: false,
    organization: '*',
    group: null,
    is_blocking: false,
  };
  return { object: 'list', data: [{ ...card, permission: [permission] }] };
}

export function toVllmMetrics(
  model: string,
  counts: { running: number; sampled: number; ended: number; ranks: number; cacheTokens: number | undefined; startedAt: number },
): string {
  const rows = [
    ['gauge', 'num_requests_running', counts.running],
    ['gauge', 'num_requests_waiting', 0],
    ['gauge', 'kv_cache_usage_perc', 0],
    ['counter', 'generation_tokens_total', counts.sampled],
    ['counter', 'request_success_total', counts.ended],
  ];
  const engines = Array.from({ length: counts.ranks }, (_, engine) => engine);
  const cache = (engine: number) =>
    `vllm:cache_config_info{block_size="16",engine="${engine}",kv_cache_size_tokens="${counts.cacheTokens}",num_gpu_blocks="1"} 1.0\n`;
  const caches = counts.cacheTokens === undefined ? '' : `# TYPE vllm:cache_config_info gauge\n${engines.map(cache).join('')}`;
  const start = `# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds ${counts.startedAt}\n`;
  return rows
    .map(([kind, name, value]) => {
      const values = engines.map((engine) => `vllm:${name}{engine="${engine}",model_name="${model}"} ${value}\n`);
      return `# TYPE vllm:${name} ${kind}\n${values.join('')}`;
    })
    .concat(caches, start)
    .join('');
}

const toGenerateId = ({ id }: FakeRequest, index: number) => `generate-tokens-${id ?? `fake-${index}`}`;
const toCompletionsId = ({ id }: FakeRequest, index: number) => `cmpl-${id ?? `fake-${index}`}`;

function wantsUsage({ stream_options: options }: Readonly<Json>): boolean {
  return isRecord(options) && options.include_usage === true;
}

function toUsage({ promptTokens, tokenIds: { length } }: FakeOutput): Json {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + length,
    completion_tokens: length,
    prompt_tokens_details: { cached_tokens: countCached(promptTokens), created_cache_tokens: null, multimodal_tokens: null },
    completion_tokens_details: null,
  };
}

function toStreamUsage({ promptTokens, tokenIds: { length } }: FakeOutput): Json {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + length,
    completion_tokens: length,
    prompt_tokens_details: { cached_tokens: countCached(promptTokens) },
  };
}

/** Whole blocks of 16 tokens, and never the last token. */
function countCached(promptTokens: number): number {
  return 16 * Math.floor(Math.max(0, promptTokens - 1) / 16);
}

function toGenerateChoice({ sampling, promptIds }: FakeRequest, output: FakeOutput): Json {
  const { tokenIds, logprobs, finishReason, stoppedBy = null, weightVersions, routedExperts, samplingMask = null } = output;
  return {
    index: 0,
    finish_reason: finishReason,
    stop_reason: stoppedBy,
    token_ids: tokenIds,
    routed_experts: toExpertsText(routedExperts, sampling, promptIds),
    sampling_mask: samplingMask,
    weight_versions: weightVersions,
    logprobs:
      logprobs === undefined || isAbsent(sampling.logprobs)
        ? null
        : {
            content: logprobs.map((logprob, i) => {
              const top = toTop(tokenIds[i], logprob, sampling.logprobs);
              return { ...top[0], top_logprobs: top };
            }),
          },
  };
}

/** Tokens are named by their ids only on demand. */
function toCompletionsChoice({ sampling }: FakeRequest, part: FakePart, decode: (tokenIds: readonly unknown[]) => string): Json {
  const { tokenIds, logprobs, finishReason, stoppedBy } = cutOutput(part.output, part.begin, part.end);
  const nameOf = (id: unknown) =>
    typeof id === 'number' && sampling.return_tokens_as_token_ids === true ? `token_id:${id}` : decode([id]);
  const isStopped = part.isLast && finishReason === 'stop';
  return {
    index: 0,
    text: decode(isStopped ? tokenIds.slice(0, -1) : tokenIds),
    logprobs:
      logprobs === undefined || isAbsent(sampling.logprobs)
        ? null
        : {
            text_offset: tokenIds.map((_, i) => part.begin + i),
            token_logprobs: logprobs,
            tokens: tokenIds.map(nameOf),
            top_logprobs: tokenIds.map((id, i) =>
              Object.fromEntries(toTop(id, logprobs[i], sampling.logprobs).map((entry) => [nameOf(entry.token_id), entry.logprob])),
            ),
          },
    finish_reason: part.isLast ? finishReason : null,
    stop_reason: (part.isLast && stoppedBy) || null,
    token_ids: sampling.return_token_ids === true ? tokenIds : null,
  };
}

/** The sampled token, then the likeliest others up to the number asked for. */
function toTop(id: unknown, logprob: unknown, asked: unknown): { token_id: unknown; logprob: unknown; rank: number }[] {
  const others = Math.max(0, Number(asked) - 1);
  const other = (i: number) => ({ token_id: Number(id) + i + 1, logprob: Number(logprob) - i - 1, rank: i + 2 });
  return [{ token_id: id, logprob, rank: 1 }, ...Array.from({ length: others }, (_, i) => other(i))];
}

/** The first token has none. */
function toPromptLogprobs(promptIds: Int32Array, { prompt_logprobs: asked }: Readonly<Json>, name: (id: number) => string | null): unknown {
  if (isAbsent(asked)) return null;
  return Array.from(promptIds, (id, at) => (at === 0 ? null : { [id]: { logprob: -1, rank: 1, decoded_token: name(id) } }));
}

/** Without the first rows of the prompt, if the request asks to leave them out. */
function toExpertsText(experts: Int32Array | undefined, sampling: Readonly<Json>, promptIds: Int32Array): string | null {
  const { routed_experts_prompt_start: start = 0 } = sampling;
  return experts ? toNpy(experts.slice(4 * Math.min(Number(start), promptIds.length))).toString('base64') : null;
}

/** tokens × 2 layers × 2 experts. */
function toNpy(experts: Int32Array): Buffer {
  const head = `{'descr': '<i4', 'fortran_order': False, 'shape': (${experts.length / 4}, 2, 2), }`.padEnd(117).concat('\n');
  const length = Buffer.alloc(2);
  length.writeUInt16LE(head.length);
  return Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), length, Buffer.from(head), Buffer.from(experts.buffer)]);
}
