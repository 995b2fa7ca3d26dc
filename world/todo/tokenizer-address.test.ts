// Switched on when the tokenizer of a vLLM can be used by its address: `--tokenizer http://…`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestService } from '@millrace/testkit';
import { openSharedVllm } from '../engines/shared-engines.ts';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { modelName } from '../engines/world-cache.ts';
import { makeMath } from '../suite/real-service.ts';

const todo = '/tokenizer_info is 404 by default; the service starts, and its workers end and are started again without end';

test('the service renders prompts with the tokenizer of the engine', { todo, skip: skipWithoutVllm(), timeout: 300_000 }, async () => {
  await using engine = await openSharedVllm();
  await using service = await TestService.open({ workers: 1, tokenizer: engine.url });
  await service.client.backends.join({ id: 'real', url: engine.url, model: modelName });
  await service.client.submit([makeMath('remote', { sampling: { max_tokens: 4 } })]);
  assert.equal((await service.client.wait('remote', { signal: AbortSignal.timeout(60_000) })).state, 'done');
});
