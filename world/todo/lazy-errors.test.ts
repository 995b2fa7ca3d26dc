// Switched on when errors inside a 200 stream are classified like statuses: vLLM checks a streamed request after it has sent its headers.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { openSharedVllm } from '../engines/shared.ts';
import { contextTokens, skipWithoutVllm } from '../engines/vllm.ts';
import { makeRequest, openEngineBackend, promptIds } from '../suite/ask.ts';

const todo = 'an error event is read as a reply without choices: backend-bad-reply, which counts against the backend';
const cut = new AbortController().signal;

describe('errors inside a 200 stream', { skip: skipWithoutVllm(), timeout: 300_000 }, () => {
  for (const dialect of ['vllm', 'vllm-completions'] as const) {
    test(`${dialect}: a token id outside of the vocabulary is backend-refused`, { todo }, async () => {
      await using engine = await openSharedVllm();
      const call = openEngineBackend(engine, dialect).generate(makeRequest({ prompt: [...promptIds, 60_000], cut }));
      await assert.rejects(call, (error) => error instanceof RolloutError && error.code === 'backend-refused');
    });
  }

  test('vllm: a prompt longer than the context is backend-refused with its reason', { todo }, async () => {
    await using engine = await openSharedVllm();
    const prompt = Array<number>(contextTokens + 10).fill(28);
    await assert.rejects(openEngineBackend(engine, 'vllm').generate(makeRequest({ prompt, cut })), (error) => {
      return error instanceof RolloutError && error.code === 'backend-refused' && error.details?.reason === 'context-length';
    });
  });
});
