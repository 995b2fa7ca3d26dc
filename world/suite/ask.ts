// What the tests send through our adapters: one short real prompt, and the engine as a backend record.

import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { type Backend, type GenerateRequest, openBackend } from '@millrace/engines';
import { backendId, type Dialect, sampling } from '@millrace/protocol';
import { z } from 'zod';
import type { Engine } from '../engines/engine-process.ts';
import { modelName } from '../engines/world-cache.ts';
import { endOfTurnId, promptIds } from '../recordings/vllm-requests.ts';

export { endOfTurnId, promptIds };

export const greedy = sampling.parse({ temperature: 0 });

export function openEngineBackend({ url }: Pick<Engine, 'url'>, dialect: Dialect, changes: { readonly model?: string } = {}): Backend {
  const record = { id: backendId.parse('real'), url, dialect, model: modelName, policyVersion: 3, state: 'up', ...changes } as const;
  return openBackend({ ...record, logprobsMode: 'processed' }, { log: silentLog, pace: new Pace() });
}

export function toPrompt(tokenIds: readonly number[]): Pick<GenerateRequest, 'promptJson' | 'promptTokens'> {
  return { promptJson: Buffer.from(tokenIds.join()), promptTokens: tokenIds.length };
}

export function makeRequest(changes: Partial<GenerateRequest> & { readonly prompt?: readonly number[] } = {}): GenerateRequest {
  const { prompt = promptIds, ...rest } = changes;
  return {
    ...toPrompt(prompt),
    sampling: sampling.parse({}),
    maxTokens: 24,
    stopTokenIds: [endOfTurnId],
    sessionId: 'rollout-1',
    requestId: `request-${crypto.randomUUID()}`,
    signal: new AbortController().signal,
    ...rest,
  };
}

const promptLogprobs = z.array(z.record(z.string(), z.looseObject({ logprob: z.number() })).nullable());

/** What vLLM itself says of each token of a text, given all before it. One without a score, as the first, is infinitely unlikely. */
export async function scoreWithVllm({ url }: Pick<Engine, 'url'>, tokenIds: readonly number[], model = modelName): Promise<number[]> {
  const body = { model, prompt: tokenIds, max_tokens: 1, temperature: 1, prompt_logprobs: 0 };
  const answer = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const reply = z.looseObject({ choices: z.array(z.looseObject({ prompt_logprobs: promptLogprobs })) }).parse(await answer.json());
  const scores = reply.choices[0]?.prompt_logprobs ?? [];
  return tokenIds.map((id, at) => scores[at]?.[id]?.logprob ?? Number.NEGATIVE_INFINITY);
}

/** How many tokens vLLM has sampled since it was started. */
export async function countSampled({ url }: Pick<Engine, 'url'>): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^vllm:generation_tokens_total\{.*\} (\S+)$/m.exec(text)?.[1] ?? 0);
}

/** How many requests the engine is working on, as it says itself. */
export async function countRunning({ url }: Pick<Engine, 'url'>, dialect: Dialect): Promise<number> {
  if (dialect === 'llamacpp') {
    const slots = z.array(z.looseObject({ is_processing: z.boolean() })).parse(await (await fetch(`${url}/slots`)).json());
    return slots.filter(({ is_processing }) => is_processing).length;
  }
  const text = await (await fetch(`${url}/metrics`)).text();
  return [...text.matchAll(/^vllm:num_requests_(?:running|waiting)\{.*\} (\S+)$/gm)].reduce((sum, [, value]) => sum + Number(value), 0);
}
