// Joining real engines: what is found out about them, and that a tokenizer of another model is noticed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { qwen3Folder, TestService } from '@millrace/testkit';
import { skipWithoutLlama } from './engines/llama.ts';
import { openPlainVllm, openSharedLlama, openSharedVllm } from './engines/shared-engines.ts';
import { skipWithoutVllm } from './engines/vllm.ts';
import { modelFolder, modelName } from './engines/world-cache.ts';
import { readLogprobsMode } from './suite/ask.ts';

describe('joining', { skip: skipWithoutVllm() || skipWithoutLlama(), timeout: 900_000 }, () => {
  test('a vLLM and a llama-server with the model of the service join, and say what they are', async () => {
    await using vllm = await openSharedVllm();
    await using llama = await openSharedLlama();
    await using service = await TestService.open({ workers: 1, tokenizer: modelFolder() });
    const { backends } = service.client;
    const first = await backends.join({ id: 'vllm', url: `${vllm.url}/v1`, model: modelName });
    assert.deepEqual([first.health, first.probe?.version, first.probe?.context_length], ['ok', '0.32.0', 2048], JSON.stringify(first));
    assert.deepEqual([first.probe?.tokenizer, first.logprobs_mode], ['same', await readLogprobsMode(vllm)], JSON.stringify(first));
    const second = await backends.join({ id: 'llama', url: llama.url, dialect: 'llamacpp' });
    assert.deepEqual([second.health, second.probe?.tokenizer, second.logprobs_mode], ['ok', 'same', 'raw'], JSON.stringify(second));
    assert.match(await service.log(), /declares no tools/);
  });

  test('a vLLM and a llama-server with another model than the tokenizer are broken, with the ids of both sides', async () => {
    await using vllm = await openPlainVllm();
    await using llama = await openSharedLlama();
    await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
    const { backends } = service.client;
    for (const join of [
      { id: 'vllm', url: vllm.url, model: modelName },
      { id: 'llama', url: llama.url, dialect: 'llamacpp' as const },
    ]) {
      const { health, probe, last_error } = await backends.join(join);
      assert.deepEqual([health, probe?.tokenizer], ['broken', 'different'], JSON.stringify(last_error));
      assert.match(last_error?.message ?? '', /<\|im_start\|>user.* as \[1, 4093, .* and the service as \[151644, 872, /);
    }
  });
});
