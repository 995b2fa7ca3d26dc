// What a real vLLM refuses, and what our adapter makes of it: a route that is switched off, a full queue, and errors inside a 200.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Log, silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { openBackend } from '@millrace/engines';
import { backendId, type Dialect, RolloutError } from '@millrace/protocol';
import { openPlainVllm, openSharedVllm } from './engines/shared-engines.ts';
import { contextTokens, skipWithoutVllm } from './engines/vllm.ts';
import { modelName } from './engines/world-cache.ts';
import { greedy, makeRequest, openEngineBackend, promptIds } from './suite/ask.ts';

describe('refusals of a real vLLM', { skip: skipWithoutVllm(), timeout: 900_000 }, () => {
  test('a plain vllm serve answers 403 on its token route: the adapter falls back to /v1/completions and says so once', async () => {
    await using engine = await openPlainVllm();
    const events: string[] = [];
    const log: Log = { ...silentLog, info: (event: string) => void events.push(event), warn: (event: string) => void events.push(event) };
    const served = { id: backendId.parse('plain'), url: engine.url, dialect: 'vllm', model: modelName } as const;
    const backend = openBackend({ ...served, policyVersion: 0, state: 'up', logprobsMode: 'processed' }, { log, pace: new Pace() });
    for (let i = 0; i < 2; i++) assert.ok((await backend.generate(makeRequest({ sampling: greedy, maxTokens: 4 }))).tokenIds.length > 0);
    assert.deepEqual(events, ['backend-without-generate']);
  });

  test('a vLLM whose queue is full is busy, not broken', async () => {
    await using engine = await openPlainVllm();
    const backend = openEngineBackend(engine, 'vllm-completions');
    const cut = new AbortController();
    const calls = [0, 1].map(() => {
      const { promise: begun, resolve } = Promise.withResolvers<void>();
      const endless = { prompt: promptIds.slice(0, 4), sampling: greedy, maxTokens: 400, stopTokenIds: [] };
      return { begun, done: backend.generate(makeRequest({ ...endless, cut: cut.signal, onTokens: () => resolve() })) };
    });
    await Promise.all(calls.map(({ begun }) => begun));
    try {
      await assert.rejects(backend.generate(makeRequest({ sampling: greedy })), (error) => {
        return error instanceof RolloutError && error.code === 'backend-failed' && error.details?.reason === 'busy';
      });
    } finally {
      cut.abort();
      await Promise.all(calls.map(({ done }) => done));
    }
  });

  // vLLM checks a streamed request after it has sent its headers.
  const lateErrors: readonly (readonly [Dialect, string, readonly number[], string | undefined])[] = [
    ['vllm', 'a token id outside of the vocabulary', [...promptIds, 60_000], undefined],
    ['vllm-completions', 'a token id outside of the vocabulary', [...promptIds, 60_000], undefined],
    ['vllm', 'a prompt longer than the context', Array<number>(contextTokens + 10).fill(28), 'context-length'],
  ];
  for (const [dialect, what, prompt, reason] of lateErrors) {
    test(`${dialect}: ${what} is backend-refused inside a 200 stream too`, async () => {
      await using engine = await openSharedVllm();
      const call = openEngineBackend(engine, dialect).generate(makeRequest({ prompt, onTokens: () => {} }));
      await assert.rejects(call, (error) => {
        return error instanceof RolloutError && error.code === 'backend-refused' && error.details?.reason === reason;
      });
    });
  }
});
