// Real engines join the service: their addresses are checked, what they say about themselves is known afterwards, and a tokenizer of
// another model is noticed.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { messageOf } from '@millrace/protocol';
import { qwen3Folder, TestService } from '@millrace/testkit';
import type { Engine } from './engines/engine-process.ts';
import { skipWithoutLlama } from './engines/llama.ts';
import { openPlainVllm, openSharedLlama, openSharedVllm } from './engines/shared-engines.ts';
import { contextTokens, skipWithoutVllm } from './engines/vllm.ts';
import { modelFolder, modelName, vllmVersion } from './engines/world-cache.ts';
import { makeMath } from './suite/real-service.ts';

describe('joining real engines', { skip: skipWithoutVllm() || skipWithoutLlama(), timeout: 900_000 }, () => {
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

  test('its engine, version, model, context length, tokenizer and logprobs mode are known', async () => {
    await service.client.backends.join({ id: 'real', url: engine.url, model: modelName });
    const { probe, logprobs_mode } = (await service.client.backends.list()).find(({ id }) => id === 'real') ?? {};
    assert.ok(probe);
    const { engine: name, version, model, context_length: context, tokenizer } = probe;
    assert.deepEqual([name, version, model, context, tokenizer], ['vllm', vllmVersion, modelName, contextTokens, 'same']);
    assert.equal(logprobs_mode, 'processed', 'as it was started');
    await service.client.backends.leave('real');
    assert.match(await service.log(), /declares no tools/);
  });

  test('a vLLM that was started without a logprobs mode is found to return raw ones', async () => {
    await using plain = await openPlainVllm();
    const { logprobs_mode } = await service.client.backends.join({ id: 'plain', url: plain.url, model: modelName });
    assert.equal(logprobs_mode, 'raw');
    await service.client.backends.leave('plain');
  });

  test('a llama-server joins, and says what it is', async () => {
    await using llama = await openSharedLlama();
    const { health, probe, logprobs_mode } = await service.client.backends.join({ id: 'llama', url: llama.url, dialect: 'llamacpp' });
    assert.deepEqual([health, probe?.tokenizer, logprobs_mode], ['ok', 'same', 'raw']);
    await service.client.backends.leave('llama');
  });

  test('a vLLM and a llama-server with another model than the tokenizer are broken, with the ids of both sides', async () => {
    await using llama = await openSharedLlama();
    await using other = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
    for (const join of [
      { id: 'vllm', url: engine.url, model: modelName },
      { id: 'llama', url: llama.url, dialect: 'llamacpp' as const },
    ]) {
      const { health, probe, last_error } = await other.client.backends.join(join);
      assert.deepEqual([health, probe?.tokenizer], ['broken', 'different'], JSON.stringify(last_error));
      assert.match(last_error?.message ?? '', /<\|im_start\|>user.* as \[1, 4093, .* and the service as \[151644, 872, /);
    }
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
