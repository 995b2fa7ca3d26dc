// Routed experts: read from both servers that report them, kept once for each token, refused if they do not align.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  backendId,
  type Dialect,
  fromBinary,
  RolloutError,
  sampling,
  toBinary,
  toTrajectoryView,
  trajectoryView,
} from '@millrace/protocol';
import { openFakeBackend, openFakeTokens } from '@millrace/testkit';
import { silentLog } from '../../../src/base/log.ts';
import { Pace } from '../../../src/base/pace.ts';
import type { GenerateRequest } from '../../../src/inference/backends/backend.ts';
import { openBackend } from '../../../src/inference/backends/open-backend.ts';
import { parseNpyExperts, parseRawExperts } from '../../../src/inference/backends/routed-experts.ts';
import { Ledger } from '../../../src/trajectory/ledger.ts';

const tokens = await openFakeTokens();
const id = backendId.parse('b1');
const quiet = { log: silentLog, pace: new Pace() };

function makeRequest(ledger: Ledger, changes: Partial<GenerateRequest> = {}): GenerateRequest {
  const { promptJson, length: promptTokens } = ledger;
  const base = { promptJson, promptTokens, sampling: sampling.parse({ routed_experts: true }), maxTokens: 50, stopTokenIds: [151645] };
  return { ...base, sessionId: 's', requestId: 'r', signal: new AbortController().signal, ...changes };
}

function begin(): Ledger {
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: [1, 300, 70_000], text: '', messages: [] });
  return ledger;
}

/** As the fake computes them. */
function expected(ledger: Ledger): number[] {
  const ids = ledger.segments.flatMap(({ tokenIds }) => [...tokenIds]).slice(0, -1);
  return ids.flatMap((tokenId, at) => [at & 0xff, tokenId & 0xff, (tokenId >> 8) & 0xff, 7]);
}

const isBadReply = (error: unknown) => error instanceof RolloutError && error.code === 'backend-bad-reply';

for (const dialect of ['vllm', 'vllm-completions', 'sglang'] as const satisfies readonly Dialect[]) {
  test(`${dialect}: each token's experts are in the trajectory once, as JSON and as binary`, async () => {
    await using fake = await openFakeBackend({ policy: () => ({ text: 'The answer is 42.' }), tokens, routedExperts: true });
    const backend = openBackend({ id, url: fake.url, dialect, policyVersion: 0, state: 'up' }, quiet);
    const ledger = begin();
    for (const changes of [{}, { onTokens: () => {} }]) {
      const generation = await backend.generate(makeRequest(ledger, changes));
      const rest = { text: '', messages: [], backend: id, policyVersions: { first: 0, last: 0 }, retries: 0 };
      ledger.appendSampled({ ...generation, ...rest });
      const all = ledger.segments.flatMap(({ routedExperts }) => (routedExperts ? [...routedExperts.ids] : []));
      assert.deepEqual(all, expected(ledger));
      ledger.appendObservation({ tokenIds: [5, 6], text: '', messages: [] });
    }
    assert.deepEqual(ledger.segments[1]?.routedExperts?.shape, dialect === 'sglang' ? [4] : [2, 2]);
    assert.ok(ledger.segments[1]?.routedExperts?.ids instanceof Uint8Array);
    const trajectory = { rolloutId: 'r1', attempt: 1, model: 'm', tools: [], segments: ledger.segments };
    assert.deepEqual(fromBinary(toBinary(trajectory)), trajectory);
    const view = trajectoryView.parse(toTrajectoryView(trajectory)).segments[1]?.routed_experts;
    assert.deepEqual([...Buffer.from(view?.data ?? '', 'base64')], [...(ledger.segments[1]?.routedExperts?.ids ?? [])]);
  });

  test(`${dialect}: a server that does not return them is refused if they were asked for`, async () => {
    await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
    const backend = openBackend({ id, url: fake.url, dialect, policyVersion: 0, state: 'up' }, quiet);
    await assert.rejects(backend.generate(makeRequest(begin())), isBadReply);
    const { routedExperts } = await backend.generate(makeRequest(begin(), { sampling: sampling.parse({}) }));
    assert.equal(routedExperts, undefined);
    const [first] = fake.requests;
    assert.ok(!('routed_experts' in (first?.sampling ?? {})));
    assert.equal(first?.options.return_routed_experts, dialect === 'sglang' ? true : undefined);
  });
}

test('llama.cpp has none, and the request is refused before it is sent', async () => {
  const backend = openBackend({ id, url: 'http://127.0.0.1:1', dialect: 'llamacpp', policyVersion: 0, state: 'up' }, quiet);
  const isRefused = (error: unknown) => error instanceof RolloutError && error.code === 'backend-refused';
  await assert.rejects(backend.generate(makeRequest(begin())), isRefused);
});

test('experts that do not cover the tokens, or are not expert numbers, are refused', () => {
  const raw = (numbers: number[]) => Buffer.from(Int32Array.from(numbers).buffer).toString('base64');
  assert.deepEqual(parseRawExperts(raw([1, 2, 300, 4]), 2), { from: 0, shape: [2], ids: Uint16Array.of(1, 2, 300, 4) });
  for (const bad of [raw([1, 2, 3]), raw([-1, 2, 3, 4]), raw([]), '', undefined, 7])
    assert.throws(() => parseRawExperts(bad, 2), isBadReply);
  for (const bad of [raw([1, 2]), '', Buffer.from('\x93NUMPY', 'latin1').toString('base64')])
    assert.throws(() => parseNpyExperts(bad, 2), isBadReply);
  const npy = (head: string, body: Buffer) =>
    Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), Buffer.of(head.length, 0), Buffer.from(head), body]).toString('base64');
  const head = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 3), }";
  assert.deepEqual(parseNpyExperts(npy(head, Buffer.of(1, 2, 3, 4, 5, 6)), 2).ids, Uint8Array.of(1, 2, 3, 4, 5, 6));
  for (const bad of [
    npy(head, Buffer.of(1)),
    npy(head.replace('False', 'True'), Buffer.alloc(6)),
    npy(head.replace('|u1', '<f2'), Buffer.alloc(12)),
  ])
    assert.throws(() => parseNpyExperts(bad, 2), isBadReply);
  assert.throws(() => parseNpyExperts(npy(head, Buffer.alloc(6)), 3), isBadReply);
});

test('the ledger refuses experts that do not match its tokens, and is unchanged', () => {
  const ledger = begin();
  const sampled = { tokenIds: [4], logprobs: [-1], text: '', messages: [], finishReason: 'stop' as const, backend: id };
  const rest = { policyVersions: { first: 0, last: 0 }, retries: 0, routedExperts: { from: 0, shape: [2], ids: new Uint8Array(5) } };
  assert.throws(() => ledger.appendSampled({ ...sampled, ...rest }), /5 routed experts for 3 tokens with 2 each/);
  assert.deepEqual([ledger.length, ledger.segments.length], [3, 1]);
});
