// A call asks for no more tokens than its server has room for; only a prompt that does not fit is a context overflow.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendId, RolloutError, sampling } from '@millrace/protocol';
import type { Backend, GenerateRequest, Generation } from '../src/backend.ts';
import { fitContext, toLengthDetails } from '../src/context-length.ts';

const generation: Generation = { tokenIds: Int32Array.of(1), logprobs: Float32Array.of(-1), finishReason: 'length' };
const { signal } = new AbortController();
const prompt = { promptJson: Buffer.from('1'), promptTokens: 2028, sampling: sampling.parse({}), stopTokenIds: [] };
const request: GenerateRequest = { ...prompt, maxTokens: 100, sessionId: 's', requestId: 'r', signal };

/** Refuses more tokens than `limit`, in the words given. */
function openStub(limit: number, words: string) {
  const asked: number[] = [];
  const backend: Backend = {
    id: backendId.parse('b'),
    policyVersion: 0,
    logprobs: 'raw',
    async generate({ maxTokens }) {
      asked.push(maxTokens);
      if (maxTokens <= limit) return generation;
      throw new RolloutError('backend-refused', words, { details: toLengthDetails(words) ?? {} });
    },
  };
  return { asked, backend };
}

const sum = (tokens: number) => `Requested token count exceeds the model's maximum context length of ${tokens} tokens.`;

test('with the context length known, only the tokens that fit are asked for', async () => {
  const { asked, backend } = openStub(20, sum(2048));
  await fitContext(backend, { dialect: 'vllm', probe: { contextTokens: 2048 } }).generate(request);
  await fitContext(backend, { dialect: 'sglang', probe: { contextTokens: 2048 } }).generate(request);
  await fitContext(backend, { dialect: 'vllm', probe: { contextTokens: 4096 } }).generate({ ...request, maxTokens: 7 });
  assert.deepEqual(asked, [20, 19, 7]);
});

test('a refused sum is asked for once more, with the tokens that fit', async () => {
  const { asked, backend } = openStub(20, sum(2048));
  await fitContext(backend, { dialect: 'vllm' }).generate(request);
  assert.deepEqual(asked, [100, 20]);
  const never = openStub(0, sum(2048));
  await assert.rejects(fitContext(never.backend, { dialect: 'vllm' }).generate(request), /maximum context length/);
  assert.deepEqual(never.asked, [100, 20]);
});

test('a prompt that does not fit is not asked for again', async () => {
  const { asked, backend } = openStub(0, sum(2000));
  await assert.rejects(
    fitContext(backend, { dialect: 'vllm', probe: { contextTokens: 2000 } }).generate(request),
    /maximum context length/,
  );
  assert.deepEqual(asked, [100]);
});

test('the context length is read from the words of each engine', () => {
  const words = [
    "This model's maximum context length is 2048 tokens. However, your prompt contains 2058 input tokens, which exceeds this limit.",
    'The decoder prompt (length 2058) is longer than the maximum model length of 2048. Make sure that `max_model_len` is no smaller than it.',
    'request (2058 tokens) exceeds the available context size (2048 tokens), try increasing it',
    "The input (2058 tokens) is longer than the model's context length (2048 tokens).",
    sum(2048),
  ];
  for (const text of words) assert.deepEqual(toLengthDetails(text), { reason: 'context-length', context_tokens: 2048 }, text);
  assert.deepEqual(toLengthDetails('the context length is exceeded'), { reason: 'context-length' });
  assert.equal(toLengthDetails('temperature must be non-negative, got -1.0.'), undefined);
});
