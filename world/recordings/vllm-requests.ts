// The requests that are sent to vLLM again and again: one short prompt on both token routes, and what is wrong with it on purpose.

import type { RecordedRequest, RepeatedEvent } from '@millrace/testkit';
import { contextTokens } from '../engines/vllm.ts';
import { modelName } from '../engines/world-cache.ts';

/** "What is 2+2?" as the model's own template writes it, up to the assistant's turn. */
export const promptIds: readonly number[] = [1, 4093, 198, 1780, 314, 216, 34, 27, 34, 47, 2, 198, 1, 520, 9531, 198];
export const endOfTurnId = 2;
/** Not below the model's 49,152. */
export const unknownId = 60_000;

export type VllmRoute = 'generate' | 'completions';

export interface AskOptions {
  readonly id?: string;
  readonly stream?: boolean;
  readonly prompt?: readonly number[] | RepeatedEvent;
  /** `null` sends none. */
  readonly model?: string | null;
  readonly sampling?: Readonly<Record<string, unknown>>;
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** A generation on either route, with the same meaning: greedy, short, with the logprob of each token. */
export function ask(route: VllmRoute, options: AskOptions = {}): RecordedRequest {
  const { id = 'request-1', stream = false, prompt = promptIds, model = modelName, sampling = {}, extra = {} } = options;
  const params = { temperature: 0, max_tokens: 8, logprobs: 0, stop_token_ids: [endOfTurnId], skip_special_tokens: false, ...sampling };
  const common = { ...(model === null ? {} : { model }), ...(stream ? { stream, stream_options: { include_usage: true } } : {}) };
  const headers = { 'x-request-id': id };
  if (route === 'generate') {
    const sampling_params = { ...params, detokenize: false };
    return { method: 'POST', path: '/inference/v1/generate', headers, body: { token_ids: prompt, sampling_params, ...common, ...extra } };
  }
  const body = { prompt, ...params, return_tokens_as_token_ids: true, ...common, ...extra };
  return { method: 'POST', path: '/v1/completions', headers, body };
}

/** Long enough to be stopped in the middle. */
export function askLong(route: VllmRoute, options: AskOptions = {}): RecordedRequest {
  return ask(route, { ...options, sampling: { max_tokens: 1500, ignore_eos: true, stop_token_ids: [], ...options.sampling } });
}

/** The id by which vLLM knows a request of ours inside. */
export function engineId(route: VllmRoute, id: string): string {
  return route === 'generate' ? `generate-tokens-${id}` : `cmpl-${id}-0`;
}

export const overlongPrompt: RepeatedEvent = { $repeat: 28, times: contextTokens + 10 };
/** Fits, but not with 100 more. */
export const nearlyFullPrompt: RepeatedEvent = { $repeat: 28, times: contextTokens - 20 };

export const get = (path: string): RecordedRequest => ({ method: 'GET', path });
export const post = (path: string, body?: unknown): RecordedRequest => ({ method: 'POST', path, ...(body === undefined ? {} : { body }) });
