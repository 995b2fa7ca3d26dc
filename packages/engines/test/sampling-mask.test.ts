// Sampling masks: read from both servers that report them, kept in the trajectory in both formats, refused if they do not fit the tokens.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { Ledger } from '@millrace/model';
import {
  backendId,
  type Dialect,
  fromBinary,
  maskRows,
  RolloutError,
  sampling,
  toBinary,
  toTrajectoryView,
  trajectoryView,
} from '@millrace/protocol';
import { openFakeBackend, openFakeTokens } from '@millrace/testkit';
import type { GenerateRequest } from '../src/backend.ts';
import { openBackend } from '../src/open-backend.ts';
import { toSamplingMask } from '../src/sampling-mask.ts';

const tokens = await openFakeTokens();
const id = backendId.parse('b1');
const quiet = { log: silentLog, pace: new Pace() };
const asked = sampling.parse({ sampling_mask: true, top_k: 20 });

function makeRequest(ledger: Ledger, changes: Partial<GenerateRequest> = {}): GenerateRequest {
  const { promptJson, length: promptTokens } = ledger;
  const base = { promptJson, promptTokens, sampling: asked, maxTokens: 50, stopTokenIds: [151645] };
  return { ...base, sessionId: 's', requestId: 'r', signal: new AbortController().signal, ...changes };
}

function begin(): Ledger {
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: [1, 300, 70_000], text: '', messages: [] });
  return ledger;
}

const hasCode = (code: string) => (error: unknown) => error instanceof RolloutError && error.code === code;

for (const dialect of ['vllm', 'sglang'] as const satisfies readonly Dialect[]) {
  test(`${dialect}: each sampled token has its mask in the trajectory, as JSON and as binary`, async () => {
    await using fake = await openFakeBackend({ policy: () => ({ text: 'The answer is 42.' }), tokens, samplingMask: true });
    const backend = openBackend({ id, url: fake.url, dialect, policyVersion: 0, state: 'up' }, quiet);
    const ledger = begin();
    for (const changes of [{}, { onTokens: () => {} }]) {
      const generation = await backend.generate(makeRequest(ledger, changes));
      const rest = { text: '', messages: [], backend: id, policyVersions: { first: 0, last: 0 }, retries: 0 };
      ledger.appendSampled({ ...generation, ...rest });
      const { tokenIds, samplingMask } = ledger.segments.at(-1) ?? {};
      assert.deepEqual(
        samplingMask && maskRows(samplingMask),
        Array.from(tokenIds ?? [], (token, at) => (at % 2 === 0 ? [token, token + 1] : [token + 2, token + 1, token])),
      );
      ledger.appendObservation({ tokenIds: [5, 6], text: '', messages: [] });
    }
    const trajectory = { rolloutId: 'r1', attempt: 1, model: 'm', tools: [], segments: ledger.segments };
    assert.deepEqual(fromBinary(toBinary(trajectory)), trajectory);
    const view = trajectoryView.parse(toTrajectoryView(trajectory)).segments[1];
    assert.ok(view?.sampling_mask?.every((mask, at) => mask.includes(view.token_ids[at] ?? -1)));
    const [first] = fake.requests;
    assert.ok(!('sampling_mask' in (first?.sampling ?? {})));
    assert.equal(first?.options.return_sampling_mask, dialect === 'sglang' ? true : undefined);
  });

  test(`${dialect}: a server that does not return masks is refused if they were asked for; others are dropped`, async () => {
    await using without = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
    const poor = openBackend({ id, url: without.url, dialect, policyVersion: 0, state: 'up' }, quiet);
    await assert.rejects(poor.generate(makeRequest(begin())), hasCode('backend-bad-reply'));
    await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens, samplingMask: true });
    const backend = openBackend({ id, url: fake.url, dialect, policyVersion: 0, state: 'up' }, quiet);
    const { samplingMask } = await backend.generate(makeRequest(begin(), { sampling: sampling.parse({ top_k: 20 }) }));
    assert.equal(samplingMask, undefined);
  });
}

test('servers without masks refuse the request before it is sent', async () => {
  for (const dialect of ['vllm-completions', 'llamacpp'] as const) {
    const backend = openBackend({ id, url: 'http://127.0.0.1:1', dialect, policyVersion: 0, state: 'up' }, quiet);
    await assert.rejects(backend.generate(makeRequest(begin())), hasCode('backend-refused'));
  }
});

test('masks that do not fit the tokens are refused: too few, without the sampled token, not token ids', () => {
  const ids = Int32Array.of(3, 4);
  assert.deepEqual(toSamplingMask([[3], [9, 4]], ids), { lengths: Int32Array.of(1, 2), tokenIds: Int32Array.of(3, 9, 4) });
  assert.equal(toSamplingMask([[3]], ids), '1 sampling masks for 2 tokens');
  assert.equal(toSamplingMask([[3], [5]], ids), 'a sampling mask at 1 without its token 4');
  assert.equal(toSamplingMask([[3], [4, -1]], ids), '-1 as a token id in a sampling mask');
  assert.equal(toSamplingMask([[3], 4], ids), 'a sampling mask at 1 without its token 4');
  assert.equal(toSamplingMask(null, ids), 'no sampling masks, which were asked for');
});

test('the ledger refuses masks for another number of tokens, and is unchanged', () => {
  const ledger = begin();
  const samplingMask = { lengths: Int32Array.of(1, 1), tokenIds: Int32Array.of(4, 5) };
  const sampled = { tokenIds: [4], logprobs: [-1], text: '', messages: [], finishReason: 'stop' as const, backend: id, samplingMask };
  assert.throws(() => ledger.appendSampled({ ...sampled, policyVersions: { first: 0, last: 0 }, retries: 0 }), /2 sampling masks for 1/);
  assert.deepEqual([ledger.length, ledger.segments.length], [3, 1]);
});

test('a submission that asks for masks without top_k, or greedily, is refused with the field named', () => {
  for (const [fields, path] of [
    [{ sampling_mask: true }, 'top_k'],
    [{ sampling_mask: true, top_k: 5, temperature: 0 }, 'temperature'],
  ] as const) {
    const parsed = sampling.safeParse(fields);
    assert.deepEqual(
      parsed.error?.issues.map((issue) => issue.path),
      [[path]],
    );
  }
});
