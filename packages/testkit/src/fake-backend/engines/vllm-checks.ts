// What the fake vLLM refuses, in vLLM's order and words, as recorded from 0.32.0. Some checks come after the headers of a stream are sent.

import type { IncomingHttpHeaders } from 'node:http';
import { type FakeLimits, type FakeRefusal, type FakeRequest, isAbsent, isRecord, isTokenIds, type Json } from './wire.ts';

const maxLogprobs = 20;

const types: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  503: 'Service Unavailable',
};

export function toVllmError(code: number, message: string, param: string | null = null): Json {
  return { error: { message, type: types[code] ?? (code < 500 ? 'BadRequestError' : 'InternalServerError'), param, code } };
}

export function checkGenerate(body: unknown, headers: IncomingHttpHeaders, limits: FakeLimits): FakeRequest | FakeRefusal {
  if (!isRecord(body)) return notAnObject(body);
  const { token_ids: ids, sampling_params: sampling, ...options } = body;
  if (!isTokenIds(ids)) return invalid(missing('token_ids', body));
  if (ids.length === 0) return invalid(tooShort);
  if (!isRecord(sampling)) return invalid(missing('sampling_params', body));
  if (isBadInteger(sampling.max_tokens)) {
    const count = Object.keys(sampling).length;
    const instance = `{'type': 'is_instance_of', 'loc': 'body.sampling_params', 'msg': 'Input should be an instance of SamplingParams', 'input': '<dict of ${count} items>', 'ctx': {'class': 'SamplingParams'}}`;
    return invalid(['body.sampling_params', instance, notAnInteger('sampling_params.max_tokens', sampling.max_tokens)]);
  }
  const request = { route: 'generate', id: toId(options, headers), promptIds: Int32Array.from(ids), sampling, options, headers } as const;
  const wrong =
    findUnknownModel(options, limits) ??
    findBadSampling(sampling) ??
    findLate(request.promptIds, sampling, limits) ??
    (ids.length >= limits.contextTokens ? late(toVllmError(400, tooLong(ids.length, limits))) : undefined);
  return wrong ?? { ...request, maxTokens: toNumber(sampling.max_tokens), isStream: options.stream === true };
}

export function checkCompletions(body: unknown, headers: IncomingHttpHeaders, limits: FakeLimits): FakeRequest | FakeRefusal {
  if (!isRecord(body)) return notAnObject(body);
  const { prompt: ids, ...sampling } = body;
  if (isBadInteger(sampling.max_tokens)) return invalid(['body.max_tokens', notAnInteger('max_tokens', sampling.max_tokens)]);
  if (!isTokenIds(ids) || ids.length === 0) return refuse(toVllmError(400, 'You must pass at least one prompt'));
  const request = {
    route: 'completions',
    id: toId(sampling, headers),
    promptIds: Int32Array.from(ids),
    sampling,
    options: {},
    headers,
  } as const;
  const wrong =
    findUnknownModel(sampling, limits) ??
    (ids.length >= limits.contextTokens ? refuse(toVllmError(400, exceeds(ids.length, limits), 'input_tokens')) : undefined) ??
    findBadSampling(sampling) ??
    findLate(request.promptIds, sampling, limits);
  return wrong ?? { ...request, maxTokens: toNumber(sampling.max_tokens), isStream: sampling.stream === true };
}

/** The header wins. */
function toId({ request_id: sent }: Json, headers: IncomingHttpHeaders): string | undefined {
  return headers['x-request-id']?.toString() ?? (typeof sent === 'string' ? sent : undefined);
}

function findUnknownModel({ model }: Json, limits: FakeLimits): FakeRefusal | undefined {
  // An adapter is named as the model.
  const served = limits.models && [...limits.models, ...(limits.adapters ?? [])];
  if (isAbsent(model) || !served || served.includes(`${model}`)) return undefined;
  return { status: 404, body: toVllmError(404, `The model \`${model}\` does not exist. Valid aliases: ${served.join(', ')}.`, 'model') };
}

function findBadSampling(sampling: Json): FakeRefusal | undefined {
  const { temperature = 1, top_p: topP = 1, max_tokens: maxTokens = 1, n = 1 } = sampling;
  if (Number(temperature) < 0) return refuseParameter('temperature', temperature, 'must be non-negative, got');
  if (!(Number(topP) > 0 && Number(topP) <= 1)) return refuseParameter('top_p', topP, 'must be in (0, 1], got');
  if (maxTokens !== null && Number(maxTokens) < 1) return refuseParameter('max_tokens', maxTokens, 'must be at least 1, got');
  return n === 1 ? undefined : refuse(toVllmError(400, 'the fake backend returns only one choice'));
}

function findLate(promptIds: Int32Array, { logprobs }: Json, { vocabularySize }: FakeLimits): FakeRefusal | undefined {
  if (Number(logprobs) > maxLogprobs) {
    const message = `Requested sample logprobs of ${logprobs}, which is greater than max allowed: ${maxLogprobs} (parameter=logprobs, value=${logprobs})`;
    return late(toVllmError(400, message, 'logprobs'));
  }
  const unknown = promptIds.find((id) => id >= vocabularySize);
  return unknown === undefined ? undefined : late(toVllmError(400, `Token id ${unknown} is out of vocabulary`));
}

const tooLong = (length: number, { contextTokens }: FakeLimits) =>
  `The decoder prompt (length ${length}) is longer than the maximum model length of ${contextTokens}. Make sure that \`max_model_len\` is no smaller than the number of text tokens.`;

const exceeds = (length: number, { contextTokens }: FakeLimits) =>
  `This model's maximum context length is ${contextTokens} tokens. However, your prompt contains ${length} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=${length})`;

function refuse(body: Json): FakeRefusal {
  return { status: 400, body };
}

function late(body: Json): FakeRefusal {
  return { status: 400, body, event: body };
}

function refuseParameter(name: string, value: unknown, rule: string): FakeRefusal {
  const said = name === 'max_tokens' ? `${value}` : Number(value).toFixed(1);
  return refuse(toVllmError(400, `${name} ${rule} ${said}. (parameter=${name}, value=${said})`, name));
}

/** A body that does not fit vLLM's schema: the field, and one line for each error. */
function invalid([param = '', ...lines]: readonly string[]): FakeRefusal {
  const message = [`${lines.length} validation error${lines.length === 1 ? '' : 's'}:`, ...lines.map((line) => `  ${line}`)].join('\n');
  return refuse({ error: { message, type: 'Bad Request', param, code: 400 } });
}

function notAnObject(body: unknown): FakeRefusal {
  const msg = 'Input should be a valid dictionary or object to extract fields from';
  return invalid(['body', `{'type': 'model_attributes_type', 'loc': 'body', 'msg': '${msg}', 'input': '${body}'}`]);
}

function missing(name: string, body: Json): readonly string[] {
  const input = `<dict of ${Object.keys(body).length} items>`;
  return [`body.${name}`, `{'type': 'missing', 'loc': 'body.${name}', 'msg': 'Field required', 'input': '${input}'}`];
}

const tooShort = [
  'body.token_ids',
  "{'type': 'too_short', 'loc': 'body.token_ids', 'msg': 'List should have at least 1 item after validation, not 0', 'input': '<list of 0 items>', 'ctx': {'field_type': 'List', 'min_length': 1, 'actual_length': 0}}",
] as const;

function notAnInteger(name: string, value: unknown): string {
  const msg = 'Input should be a valid integer, unable to parse string as an integer';
  return `{'type': 'int_parsing', 'loc': 'body.${name}', 'msg': '${msg}', 'input': '${value}'}`;
}

const isBadInteger = (value: unknown) => !isAbsent(value) && !Number.isInteger(value);
const toNumber = (value: unknown) => (typeof value === 'number' ? value : undefined);
