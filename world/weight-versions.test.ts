// The engine's own weight versions: a request that is kept over an update in place was sampled by two of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSharedVllm } from './engines/shared-engines.ts';
import { skipWithoutVllm } from './engines/vllm.ts';
import { greedy, makeRequest, openEngineBackend } from './suite/ask.ts';

test('a generation kept over an update in place names both versions', { skip: skipWithoutVllm(), timeout: 300_000 }, async () => {
  await using engine = await openSharedVllm();
  const post = (path: string, body: unknown = {}) =>
    fetch(`${engine.url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  await post('/update_weight_version', { new_version: '3' });
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const request = makeRequest({ sampling: greedy, maxTokens: 60, stopTokenIds: [], onTokens: () => resolve() });
  const call = openEngineBackend(engine, 'vllm').generate({ ...request, promptJson: Buffer.from('1,4093,198,1780'), promptTokens: 4 });
  await begun;
  try {
    await post('/pause?mode=keep');
    await post('/update_weight_version', { new_version: '4' });
    await post('/resume');
    assert.deepEqual((await call).policyVersions, { first: 3, last: 4 });
  } finally {
    await post('/update_weight_version', { new_version: 'default' });
  }
});
