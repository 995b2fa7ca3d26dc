// Switched on when a 503 without Retry-After means busy: vLLM refuses requests above --max-num-queued-reqs that way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { openVllm, skipWithoutVllm } from '../engines/vllm.ts';
import { greedy, makeRequest, openEngineBackend } from '../suite/ask.ts';

const todo = 'a 503 is busy only with Retry-After, which vLLM does not send; without it counts against the backend';

test('a vLLM whose queue is full is busy, not broken', { todo, skip: skipWithoutVllm(), timeout: 900_000 }, async () => {
  await using engine = await openVllm({ args: ['--max-num-queued-reqs', '1'] });
  const backend = openEngineBackend(engine, 'vllm-completions');
  const stop = new AbortController();
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const first = backend.generate(
    makeRequest({ sampling: greedy, maxTokens: 400, stopTokenIds: [], cut: stop.signal, onTokens: () => resolve() }),
  );
  await begun;
  try {
    await assert.rejects(backend.generate(makeRequest({ sampling: greedy })), (error) => {
      return error instanceof RolloutError && error.code === 'backend-failed' && error.details?.reason === 'busy';
    });
  } finally {
    stop.abort();
    await first;
  }
});
