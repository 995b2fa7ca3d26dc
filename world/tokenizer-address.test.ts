// The tokenizer and the chat template of a real vLLM, used by its address: `--tokenizer http://…`.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TestService } from '@millrace/testkit';
import { openPlainVllm } from './engines/shared-engines.ts';
import { openVllm, skipWithoutVllm } from './engines/vllm.ts';
import { modelName } from './engines/world-cache.ts';
import { makeMath } from './suite/real-service.ts';

describe('the tokenizer of a vLLM', { skip: skipWithoutVllm(), timeout: 900_000 }, () => {
  test('the service renders prompts with it, and finds that it agrees', async () => {
    await using engine = await openVllm({ scaleOut: true, devMode: true, args: ['--enable-tokenizer-info-endpoint'] });
    await using service = await TestService.open({ workers: 1, tokenizer: engine.url });
    const joined = await service.client.backends.join({ id: 'real', url: engine.url, model: modelName });
    assert.deepEqual([joined.health, joined.probe?.tokenizer, joined.logprobs_mode], ['ok', 'same', 'processed'], JSON.stringify(joined));
    await service.client.submit([makeMath('remote', { sampling: { max_tokens: 4 } })]);
    assert.equal((await service.client.wait('remote', { signal: AbortSignal.timeout(60_000) })).state, 'done');
    const { provenances = [] } = await service.client.trajectory('remote');
    assert.deepEqual(
      provenances.map(({ engine: name, engine_version, logprobs_mode, tokenizer_sha256 }) => [
        name,
        engine_version,
        logprobs_mode,
        tokenizer_sha256,
      ]),
      [['vllm', '0.32.0', 'processed', null]],
    );
  });

  test('without its chat template the service refuses to start, and says how to get it', async () => {
    await using engine = await openPlainVllm();
    await assert.rejects(TestService.open({ workers: 1, tokenizer: engine.url }), /--enable-tokenizer-info-endpoint/);
  });
});
