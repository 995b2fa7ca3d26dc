// A trainer is warned if a backend's logprobs are not those of the distribution that was sampled from.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { backendId, type Dialect, type LogprobsMode, sampling } from '@millrace/protocol';
import { openFakeBackend, openFakeTokens } from '@millrace/testkit';
import { findLogprobsDoubt, logprobsOf } from '../src/logprobs.ts';
import { openBackend } from '../src/open-backend.ts';

function doubt(dialect: Dialect, logprobsMode: LogprobsMode, fields: Record<string, number>): string | undefined {
  return findLogprobsDoubt({ dialect, logprobsMode }, sampling.parse(fields));
}

test('plain sampling is never in doubt', () => {
  for (const dialect of ['vllm', 'sglang', 'llamacpp'] as const)
    assert.equal(doubt(dialect, 'unknown', { max_tokens: 5, seed: 3 }), undefined);
});

test('raw or unknown logprobs are in doubt if anything changes the distribution, and the warning names the fix', () => {
  assert.match(doubt('vllm', 'raw', { temperature: 0.7 }) ?? '', /temperature.*--logprobs-mode processed_logprobs/);
  assert.match(doubt('vllm', 'unknown', { temperature: 0.7 }) ?? '', /unknown.*logprobs_mode/);
  assert.match(doubt('vllm-completions', 'raw', { top_p: 0.9, presence_penalty: 1 }) ?? '', /presence_penalty, top_p/);
  assert.equal(doubt('vllm', 'processed', { temperature: 0.7, top_p: 0.9 }), undefined);
});

test('SGLang logprobs include temperature but not truncation; those of llama.cpp include neither', () => {
  assert.equal(doubt('sglang', 'unknown', { temperature: 0.7 }), undefined);
  assert.match(doubt('sglang', 'unknown', { top_k: 20 }) ?? '', /top_k/);
  assert.match(doubt('sglang', 'raw', { temperature: 0.7 }) ?? '', /temperature/);
  assert.match(doubt('llamacpp', 'processed', { temperature: 0.7 }) ?? '', /temperature/);
  assert.deepEqual(
    [logprobsOf({ dialect: 'sglang' }), logprobsOf({ dialect: 'llamacpp' }), logprobsOf({ dialect: 'vllm' })],
    ['processed', 'raw', 'unknown'],
  );
});

test('a doubt is logged once per backend, not once per call', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens: await openFakeTokens() });
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (event: string, fields: unknown) => warnings.push([event, fields]) };
  const backend = openBackend(
    { id: backendId.parse('b1'), url: fake.url, dialect: 'vllm', logprobsMode: 'raw', policyVersion: 0, state: 'up' },
    { log, pace: new Pace() },
  );
  const base = { promptJson: Buffer.from('1'), promptTokens: 1, maxTokens: 9, stopTokenIds: [], sessionId: 's', requestId: 'r' };
  for (const temperature of [1, 0.5, 0.6]) {
    await backend.generate({ ...base, sampling: sampling.parse({ temperature }), signal: new AbortController().signal });
  }
  assert.equal(warnings.length, 1);
  assert.equal(backend.logprobs, 'raw');
});
