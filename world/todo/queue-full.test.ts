// Switched on when a 503 without Retry-After means busy: vLLM refuses requests above --max-num-queued-reqs that way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { openPlainVllm } from '../engines/shared.ts';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { greedy, makeRequest, openEngineBackend } from '../suite/ask.ts';

const todo = 'a 503 is busy only with Retry-After, which vLLM does not send; without it counts against the backend';

test('a vLLM whose queue is full is busy, not broken', { todo, skip: skipWithoutVllm(), timeout: 900_000 }, async () => {
  await using engine = await openPlainVllm();
  const backend = openEngineBackend(engine, 'vllm-completions');
  const cut = new AbortController();
  const calls = [0, 1].map(() => {
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    const request = makeRequest({ sampling: greedy, maxTokens: 400, stopTokenIds: [], cut: cut.signal, onTokens: () => resolve() });
    return { begun, done: backend.generate({ ...request, promptJson: Buffer.from('1,4093,198,1780'), promptTokens: 4 }) };
  });
  await Promise.all(calls.map(({ begun }) => begun));
  try {
    await assert.rejects(backend.generate(makeRequest({ sampling: greedy })), (error) => {
      return error instanceof RolloutError && error.code === 'backend-failed' && error.details?.reason === 'busy';
    });
  } finally {
    cut.abort();
    await Promise.all(calls.map(({ done }) => done));
  }
});
