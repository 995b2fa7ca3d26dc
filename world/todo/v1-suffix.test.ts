// Switched on when joining checks the address: users of OpenAI clients write …:8000/v1.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageOf } from '@millrace/protocol';
import { TestService } from '@millrace/testkit';
import { openSharedVllm } from '../engines/shared.ts';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { modelFolder, modelName } from '../engines/world-cache.ts';
import { makeMath } from '../suite/real-service.ts';

const todo = 'the address is stored as it is, and every call is a 404';
const options = { todo, skip: skipWithoutVllm(), timeout: 300_000 };

test('a backend that joins as …/v1 is either refused with a message that names /v1, or serves rollouts', options, async () => {
  await using engine = await openSharedVllm();
  await using service = await TestService.open({ workers: 1, tokenizer: modelFolder() });
  try {
    await service.client.backends.join({ id: 'v1', url: `${engine.url}/v1`, model: modelName });
  } catch (error) {
    return assert.match(messageOf(error), /\/v1/);
  }
  await service.client.submit([makeMath('v1', { limits: { max_retries: 0 }, sampling: { max_tokens: 4 } })]);
  const { state, failure } = await service.client.wait('v1', { signal: AbortSignal.timeout(120_000) });
  assert.equal(state, 'done', failure?.message);
});

test('a dead address is refused, or shown as broken at once', options, async () => {
  await using service = await TestService.open({ workers: 1, tokenizer: modelFolder() });
  try {
    await service.client.backends.join({ id: 'dead', url: 'http://127.0.0.1:9', model: modelName });
  } catch (error) {
    return assert.match(messageOf(error), /127\.0\.0\.1:9/);
  }
  assert.equal((await service.client.backends.list())[0]?.health, 'broken');
});
