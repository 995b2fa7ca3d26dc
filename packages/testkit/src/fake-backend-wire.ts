// The fake backend's side of vLLM's wire: requests as vLLM reads them, replies with the fields that vLLM writes.

import type { IncomingHttpHeaders } from 'node:http';
import { fakeLogprob } from './fake-logprob.ts';

export type FakeRoute = 'generate' | 'completions';

export interface FakeRequest {
  readonly route: FakeRoute;
  readonly promptIds: Int32Array;
  /** Absent where the caller sent none. */
  readonly maxTokens: number | undefined;
  /** As sent: `sampling_params` of generate, all but the prompt of completions. */
  readonly sampling: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
}

export interface FakeAnswer {
  readonly tokenIds: Int32Array;
  readonly finishReason: 'stop' | 'length' | 'abort';
  readonly text: string;
}

/** A string says why the body is refused. */
export function parseFakeRequest(route: FakeRoute, body: string, headers: IncomingHttpHeaders): FakeRequest | string {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return 'the body is not JSON';
  }
  if (!isRecord(json)) return 'the body is not an object';
  const { token_ids, prompt, sampling_params, ...rest } = json;
  const ids = route === 'generate' ? token_ids : prompt;
  if (!Array.isArray(ids) || ids.length === 0) return `${route === 'generate' ? 'token_ids' : 'prompt'} must be a list of at least one id`;
  if (!ids.every((id) => Number.isInteger(id) && id >= 0)) return 'token ids must be integers from 0';
  const sampling = route === 'generate' ? sampling_params : rest;
  if (!isRecord(sampling)) return 'sampling_params must be an object';
  const maxTokens = sampling.max_tokens ?? undefined;
  if (maxTokens !== undefined && (typeof maxTokens !== 'number' || !Number.isInteger(maxTokens) || maxTokens < 1)) {
    return `max_tokens must be at least 1, got ${JSON.stringify(maxTokens)}.`;
  }
  if (sampling.n !== undefined && sampling.n !== 1) return 'the fake backend gives one choice only';
  return { route, promptIds: Int32Array.from(ids), maxTokens, sampling, headers };
}

export function toReply(
  request: FakeRequest,
  answer: FakeAnswer,
  { model, index }: { model: string; index: number },
): Record<string, unknown> {
  const given = request.headers['x-request-id'] ?? `fake-${index}`;
  const prompt = request.promptIds.length;
  const completion = answer.tokenIds.length;
  const common = {
    created: 1_700_000_000,
    model,
    usage: { prompt_tokens: prompt, total_tokens: prompt + completion, completion_tokens: completion, prompt_tokens_details: null },
    kv_transfer_params: null,
  };
  if (request.route === 'generate') {
    return { request_id: `generate-tokens-${given}`, ...common, choices: [toGenerateChoice(request, answer)], prompt_logprobs: null };
  }
  return { id: `cmpl-${given}`, object: 'text_completion', ...common, choices: [toCompletionsChoice(request, answer)] };
}

function toGenerateChoice({ promptIds, sampling }: FakeRequest, { tokenIds, finishReason }: FakeAnswer): Record<string, unknown> {
  const content = Array.from(tokenIds, (id, i) => {
    const entry = { token: `token_id:${id}`, logprob: fakeLogprob(promptIds.length + i, id), bytes: null };
    return { ...entry, top_logprobs: [entry] };
  });
  return {
    index: 0,
    logprobs: isAbsent(sampling.logprobs) ? null : { content },
    finish_reason: finishReason,
    token_ids: Array.from(tokenIds),
    routed_experts: null,
    sampling_mask: null,
  };
}

function toCompletionsChoice({ promptIds, sampling }: FakeRequest, { tokenIds, finishReason, text }: FakeAnswer): Record<string, unknown> {
  const logprobs = Array.from(tokenIds, (id, i) => fakeLogprob(promptIds.length + i, id));
  const tokens = Array.from(tokenIds, (id) => `token_id:${id}`);
  const withIds = sampling.return_token_ids === true;
  return {
    index: 0,
    text,
    logprobs: isAbsent(sampling.logprobs)
      ? null
      : {
          text_offset: tokens.map(() => 0),
          token_logprobs: logprobs,
          tokens,
          top_logprobs: tokens.map((token, i) => ({ [token]: logprobs[i] })),
        },
    finish_reason: finishReason,
    stop_reason: null,
    token_ids: withIds ? Array.from(tokenIds) : null,
    prompt_logprobs: null,
    prompt_token_ids: withIds ? Array.from(promptIds) : null,
  };
}

export function toErrorReply(status: number, message: string): Record<string, unknown> {
  const type = status === 404 ? 'NotFoundError' : status < 500 ? 'BadRequestError' : 'InternalServerError';
  return { error: { message, type, param: null, code: status } };
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
