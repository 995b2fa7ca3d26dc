// A real vLLM joins the service: its address is checked, and what it says about itself is known afterwards.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { messageOf } from '@millrace/protocol';
import { TestService } from '@millrace/testkit';
import type { Engine } from './engines/engine-process.ts';
import { openSharedVllm } from './engines/shared-engines.ts';
import { contextTokens, skipWithoutVllm } from './engines/vllm.ts';
import { modelFolder, modelName, vllmVersion } from './engines/world-cache.ts';
import { makeMath } from './suite/real-service.ts';

describe('joining a real vLLM', { skip: skipWithoutVllm(), timeout: 900_000 }, () => {
  let engine: Engine;
  let service: TestService;
  before(async () => {
    engine = await openSharedVllm();
    service = await TestService.open({ workers: 1, tokenizer: modelFolder() });
  });
  after(async () => {
    await service?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
  });

  test('its engine, version, model and context length are known', async () => {
    await service.client.backends.join({ id: 'real', url: engine.url, model: modelName });
    const { probe } = (await service.client.backends.list()).find(({ id }) => id === 'real') ?? {};
    assert.ok(probe);
    const { engine: name, version, model, context_length: context } = probe;
    assert.deepEqual([name, version, model, context], ['vllm', vllmVersion, modelName, contextTokens]);
    await service.client.backends.leave('real');
  });

  test('an address that ends in /v1, as OpenAI clients want it, serves rollouts', async () => {
    await service.client.backends.join({ id: 'v1', url: `${engine.url}/v1`, model: modelName });
    await service.client.submit([makeMath('v1', { limits: { max_retries: 0 }, sampling: { max_tokens: 4 } })]);
    const { state, failure } = await service.client.wait('v1', { signal: AbortSignal.timeout(120_000) });
    assert.equal(state, 'done', failure?.message);
    await service.client.backends.leave('v1');
  });

  test('a dead address is refused, or shown as broken at once', async () => {
    try {
      await service.client.backends.join({ id: 'dead', url: 'http://127.0.0.1:9', model: modelName });
    } catch (error) {
      return assert.match(messageOf(error), /127\.0\.0\.1:9/);
    }
    assert.equal((await service.client.backends.list()).find(({ id }) => id === 'dead')?.health, 'broken');
  });
});
