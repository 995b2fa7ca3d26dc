// Routed experts: read from both servers that report them, kept once for each token, refused if they do not align.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace, runNow } from '@millrace/base/pace';
import { Ledger } from '@millrace/model';
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
import { measureLoopBlock, openFakeBackend, openFakeTokens } from '@millrace/testkit';
import type { GenerateRequest } from '../../src/backend.ts';
import { openBackend } from '../../src/open-backend.ts';
import { decodeExperts, type ExpertsFormat, type WantedExperts } from '../../src/reply/routed-experts.ts';
import { openServer } from '../open-server.ts';
import { openReplyThread } from '../reply-thread.ts';

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
      const { knownExperts } = ledger;
      const generation = await backend.generate(makeRequest(ledger, { ...changes, ...(knownExperts ? { knownExperts } : {}) }));
      assert.equal(generation.routedExperts?.from, knownExperts?.tokens ?? 0);
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

test('experts that vLLM sends unasked are skipped for the prompt and dropped; a reply that they make too long says so', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens, routedExperts: true });
  const record = { id, url: fake.url, dialect: 'vllm', policyVersion: 0, state: 'up' } as const;
  const generation = await openBackend(record, quiet).generate(makeRequest(begin(), { sampling: sampling.parse({}) }));
  assert.equal(generation.routedExperts, undefined);
  assert.equal(fake.requests[0]?.sampling.routed_experts_prompt_start, 3);
  const long = `{"choices":[{"routed_experts":"${'A'.repeat(4 << 20)}"}]}`;
  await using other = await openServer((_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(long));
  const call = openBackend({ ...record, url: other.url }, quiet).generate(makeRequest(begin(), { sampling: sampling.parse({}) }));
  await assert.rejects(call, /longer than \d+ bytes: it has routed experts, which were not asked for/);
});

test('llama.cpp has none, and the request is refused before it is sent', async () => {
  const backend = openBackend({ id, url: 'http://127.0.0.1:1', dialect: 'llamacpp', policyVersion: 0, state: 'up' }, quiet);
  const isRefused = (error: unknown) => error instanceof RolloutError && error.code === 'backend-refused';
  await assert.rejects(backend.generate(makeRequest(begin())), isRefused);
});

/** As a reply has them, decoded without a pause. */
function decode(text: string | undefined, format: ExpertsFormat, wanted: number | WantedExperts) {
  const bytes = text === undefined ? undefined : [Buffer.from(text)];
  return runNow(decodeExperts(bytes, format, typeof wanted === 'number' ? { tokens: wanted } : wanted));
}

const toRaw = (numbers: readonly number[]) => Buffer.from(Int32Array.from(numbers).buffer).toString('base64');
const toNpy = (head: string, body: Buffer) =>
  Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), Buffer.of(head.length, 0), Buffer.from(head), body]).toString('base64');

test('experts that do not cover the tokens, or are not expert numbers, are refused', () => {
  assert.deepEqual(decode(toRaw([1, 2, 300, 4]), 'raw', 2), { from: 0, shape: [2], ids: Uint16Array.of(1, 2, 300, 4) });
  for (const bad of [toRaw([1, 2, 3]), toRaw([-1, 2, 3, 4]), toRaw([]), '', undefined])
    assert.throws(() => decode(bad, 'raw', 2), isBadReply);
  for (const bad of [toRaw([1, 2]), '', Buffer.from('\x93NUMPY', 'latin1').toString('base64')])
    assert.throws(() => decode(bad, 'npy', 2), isBadReply);
  const head = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 3), }";
  assert.deepEqual(decode(toNpy(head, Buffer.of(1, 2, 3, 4, 5, 6)), 'npy', 2).ids, Uint8Array.of(1, 2, 3, 4, 5, 6));
  for (const bad of [
    toNpy(head, Buffer.of(1)),
    toNpy(head.replace('False', 'True'), Buffer.alloc(6)),
    toNpy(head.replace('|u1', '<f2'), Buffer.alloc(12)),
  ])
    assert.throws(() => decode(bad, 'npy', 2), isBadReply);
  assert.throws(() => decode(toNpy(head, Buffer.alloc(6)), 'npy', 3), isBadReply);
});

test('every width of numbers is read, and the smallest that fits is kept', () => {
  const read = (type: string, body: ArrayBuffer) =>
    decode(toNpy(`{'descr': '${type}', 'fortran_order': False, 'shape': (2, 1, 2), }`, Buffer.from(body)), 'npy', 2).ids;
  assert.deepEqual(read('<u2', Uint16Array.of(1, 2, 3, 4).buffer), Uint8Array.of(1, 2, 3, 4));
  assert.deepEqual(read('<u2', Uint16Array.of(1, 2, 3, 400).buffer), Uint16Array.of(1, 2, 3, 400));
  assert.deepEqual(read('<i4', Int32Array.of(1, 2, 3, 65_535).buffer), Uint16Array.of(1, 2, 3, 65_535));
  assert.deepEqual(read('<i8', BigInt64Array.of(1n, 2n, 3n, 4n).buffer), Uint8Array.of(1, 2, 3, 4));
  assert.throws(() => read('<i8', BigInt64Array.of(1n, 2n, 3n, 1n << 40n).buffer), isBadReply);
  assert.throws(() => read('<i4', Int32Array.of(1, 2, 3, -1).buffer), isBadReply);
});

test('rows that were not asked for again may come all the same, and the shape of a row stays', () => {
  const known = { tokens: 2, shape: [2] };
  assert.deepEqual(decode(toRaw([5, 6]), 'raw', { tokens: 3, known }), { from: 2, shape: [2], ids: Uint8Array.of(5, 6) });
  assert.equal(decode(toRaw([1, 2, 3, 4, 5, 6]), 'raw', { tokens: 3, known }).from, 0);
  assert.throws(() => decode(toRaw([5, 6, 7, 8]), 'raw', { tokens: 3, known }), isBadReply);
  const npy = (rows: number) => toNpy(`{'descr': '|u1', 'fortran_order': False, 'shape': (${rows}, 1, 2), }`, Buffer.alloc(2 * rows));
  assert.equal(decode(npy(1), 'npy', { tokens: 3, known }).from, 2);
  assert.equal(decode(npy(3), 'npy', { tokens: 3, known }).from, 0);
  assert.throws(() => decode(npy(2), 'npy', { tokens: 3, known }), isBadReply);
});

test('a reply with 15 MB of experts is read in steps, which leave the event loop free', async () => {
  const promptTokens = 8192;
  const numbers = Int32Array.from({ length: 480 * promptTokens }, (_, i) => i % 128);
  const choice = {
    index: 0,
    finish_reason: 'stop',
    token_ids: [7],
    routed_experts: toNpy(`{'descr': '<i4', 'fortran_order': False, 'shape': (${promptTokens}, 60, 8), }`, Buffer.from(numbers.buffer)),
    logprobs: { content: [{ token_id: 7, logprob: -1 }] },
  };
  const body = JSON.stringify({ choices: [choice], usage: { prompt_tokens: promptTokens, completion_tokens: 1 } });
  const served = await openReplyThread(body);
  await using _ = served;
  const backend = openBackend({ id, url: served.url, dialect: 'vllm', policyVersion: 0, state: 'up' }, quiet);
  const prompt = { promptJson: Buffer.from(Array(promptTokens).fill(1).join()), promptTokens };
  const longest: number[] = [];
  for (let round = 0; round < 5; round++) {
    const block = await measureLoopBlock(async () => {
      const { routedExperts } = await backend.generate(makeRequest(begin(), { ...prompt, maxTokens: 64 }));
      assert.equal(routedExperts?.ids.length, numbers.length);
    });
    longest.push(block);
  }
  // In one step it takes about 300 ms. `bench reply-cost` measures the target of 20 ms, on a quiet machine.
  assert.ok(Math.min(...longest) < 60, `blocked for ${longest.map(Math.round).join(', ')} ms`);
});

test('the ledger refuses experts that do not match its tokens, and is unchanged', () => {
  const ledger = begin();
  const sampled = { tokenIds: [4], logprobs: [-1], text: '', messages: [], finishReason: 'stop' as const, backend: id };
  const rest = { policyVersions: { first: 0, last: 0 }, retries: 0, routedExperts: { from: 0, shape: [2], ids: new Uint8Array(5) } };
  assert.throws(() => ledger.appendSampled({ ...sampled, ...rest }), /5 routed experts for 3 tokens with 2 each/);
  assert.deepEqual([ledger.length, ledger.segments.length], [3, 1]);
});
