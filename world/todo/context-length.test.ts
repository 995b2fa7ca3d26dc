// Switched on when the context length is learned at the join: a rollout that runs into it must not be scored as if the agent had overflowed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestService } from '@millrace/testkit';
import { openSharedVllm } from '../engines/shared.ts';
import { contextTokens, skipWithoutVllm } from '../engines/vllm.ts';
import { modelFolder, modelName } from '../engines/world-cache.ts';

const todo = 'joining asks the engine nothing';

test('the context length of the engine is known after the join', { todo, skip: skipWithoutVllm(), timeout: 300_000 }, async () => {
  await using engine = await openSharedVllm();
  await using service = await TestService.open({ workers: 1, tokenizer: modelFolder() });
  await service.client.backends.join({ id: 'real', url: engine.url, model: modelName });
  const answer = await fetch(`${service.url}/v1/backends`);
  assert.match(await answer.text(), new RegExp(`:\\s*${contextTokens}\\b`));
});
