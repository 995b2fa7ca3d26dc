// Switched on when the adapter falls back: a vLLM that was started without --enable-scale-out refuses /inference/v1/generate with 403.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendId } from '@millrace/protocol';
import { type Log, openBackend, Pace, silentLog } from '@millrace/server';
import { openPlainVllm } from '../engines/shared.ts';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { modelName } from '../engines/world-cache.ts';
import { greedy, makeRequest } from '../suite/ask.ts';

const todo = 'the adapter falls back on 404 and 405 only, not on 403';

test('a plain vllm serve works: the adapter falls back to /v1/completions and says so once', {
  todo,
  skip: skipWithoutVllm(),
}, async () => {
  await using engine = await openPlainVllm();
  const events: string[] = [];
  const log: Log = { ...silentLog, info: (event: string) => void events.push(event), warn: (event: string) => void events.push(event) };
  const record = {
    id: backendId.parse('plain'),
    url: engine.url,
    dialect: 'vllm',
    model: modelName,
    policyVersion: 0,
    state: 'up',
  } as const;
  const backend = openBackend(record, { log, pace: new Pace() });
  for (let i = 0; i < 2; i++) assert.ok((await backend.generate(makeRequest({ sampling: greedy, maxTokens: 4 }))).tokenIds.length > 0);
  assert.deepEqual(events, ['backend-without-generate']);
});
