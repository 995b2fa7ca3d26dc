// What is specific to SGLang: pairs that must match the ids, aborts before any token, and weight versions in replies.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { backendId, sampling } from '@millrace/protocol';
import { openFakeBackend, openFakeTokens } from '@millrace/testkit';
import type { GenerateRequest } from '../src/backend.ts';
import { openSglangBackend } from '../src/sglang.ts';
import { sglangRoute } from '../src/sglang-wire.ts';
import { openServer } from './open-server.ts';

const tokens = await openFakeTokens();
const quiet = { log: silentLog, pace: new Pace() };

function makeRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  const signal = new AbortController().signal;
  const base = { promptJson: Buffer.from('1,2,3'), promptTokens: 3, sampling: sampling.parse({}), maxTokens: 64, stopTokenIds: [9] };
  return { ...base, sessionId: 's', requestId: 'r', signal, ...changes };
}

function parse(reply: Record<string, unknown>, meta: Record<string, unknown> = {}) {
  const meta_info = {
    finish_reason: { type: 'stop', matched: 9 },
    prompt_tokens: 3,
    output_token_logprobs: [
      [-1, 5, null],
      [-2, 9, null],
    ],
    ...meta,
  };
  return sglangRoute.parse(JSON.stringify({ text: '', output_ids: [5, 9], meta_info, ...reply }), makeRequest());
}

test('ids that differ from those paired with the logprobs are refused', () => {
  assert.deepEqual([...parse({}).tokenIds], [5, 9]);
  assert.throws(() => parse({ output_ids: [5, 8] }), /two ids for one token: 8 and, with its logprob, 9/);
  assert.throws(() => parse({ output_ids: [5, 9, 9] }), /2 logprobs for 3 tokens/);
  assert.throws(() => parse({}, { output_token_logprobs: [7, null] }), /two ids/);
  assert.throws(() => parse({}, { finish_reason: null }), /finish reason/);
});

test('an abort before prefill is an abort without tokens; its prompt count is ignored', () => {
  const finish_reason = { type: 'abort', message: 'Abort before prefill' };
  const reply = { text: '', meta_info: { id: 'r', finish_reason, prompt_tokens: 0, completion_tokens: 0 } };
  const generation = sglangRoute.parse(JSON.stringify(reply), makeRequest());
  assert.equal(generation.finishReason, 'abort');
  assert.equal(generation.tokenIds.length, 0);
});

test('an abort during a turn keeps the sampled tokens, and its prompt count is checked', () => {
  const finish_reason = { type: 'abort', message: 'Abort', status_code: null, err_type: null };
  assert.deepEqual([...parse({}, { finish_reason }).logprobs], [-1, -2]);
  assert.throws(() => parse({}, { finish_reason, prompt_tokens: 4 }), /a prompt of 4 tokens/);
});

test('an integer weight version is the policy version; any other is ignored', () => {
  for (const [said, version] of [
    ['7', 7],
    [7, 7],
    ['0', 0],
  ] as const)
    assert.deepEqual(parse({}, { weight_version: said }).policyVersions, { first: version, last: version });
  for (const said of ['default', '', '-1', '1.5', null, undefined, '99999999999999999999'])
    assert.equal(parse({}, { weight_version: said }).policyVersions, undefined);
});

test('a reply of an older version with new weights started at the earliest with those of the reply before it', async () => {
  let weight_version = '4';
  await using server = await openServer((request, response) => {
    const meta_info = { finish_reason: { type: 'stop' }, prompt_tokens: 3, output_token_logprobs: [[-1, 5, null]], weight_version };
    request.resume().on('end', () => response.end(JSON.stringify({ text: '', output_ids: [5], meta_info })));
  });
  const backend = openSglangBackend(
    { id: backendId.parse('b1'), url: server.url, dialect: 'sglang', policyVersion: 0, state: 'up' },
    quiet,
  );
  assert.deepEqual((await backend.generate(makeRequest())).policyVersions, { first: 4, last: 4 });
  weight_version = '5';
  assert.deepEqual((await backend.generate(makeRequest())).policyVersions, { first: 4, last: 5 });
  assert.deepEqual((await backend.generate(makeRequest())).policyVersions, { first: 5, last: 5 });
});

test('a reply that reports the weights of each span of tokens is not guessed at', async () => {
  const spans = (...all: (readonly [string, number, number])[]) => all.map(([version, start, end]) => ({ version, start, end }));
  const { policyVersions, versionSpans } = parse({}, { weight_version: '9', weight_versions: spans(['8', 0, 1], ['9', 1, 2]) });
  assert.deepEqual(policyVersions, { first: 8, last: 9 });
  assert.deepEqual(
    versionSpans?.map(({ start, end }) => [start, end]),
    [
      [0, 1],
      [1, 2],
    ],
  );
  assert.throws(() => parse({}, { weight_versions: spans(['8', 0, 1]) }), /do not cover its 2 tokens/);
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens, weightVersion: '4' });
  const backend = openSglangBackend({ id: backendId.parse('b1'), url: fake.url, dialect: 'sglang', policyVersion: 0, state: 'up' }, quiet);
  await backend.generate(makeRequest());
  fake.setWeightVersion('5');
  assert.deepEqual((await backend.generate(makeRequest())).policyVersions, { first: 5, last: 5 });
});

test('the events of a stream have all tokens or only the new ones, and the count shows which', () => {
  const event = (ids: number[], total: number, type?: string) =>
    JSON.stringify({
      output_ids: ids,
      meta_info: {
        finish_reason: type ? { type } : null,
        prompt_tokens: 3,
        completion_tokens: total,
        weight_version: String(total),
        output_token_logprobs: ids.map((id) => [-id, id, null]),
      },
    });
  for (const parts of [
    [event([5], 1), event([5, 6], 2), event([5, 6, 9], 3, 'stop')],
    [event([5], 1), event([6], 2), event([9], 3, 'stop')],
  ]) {
    const stream = sglangRoute.openStream?.(makeRequest()) ?? assert.fail('no stream');
    for (const part of parts) stream.take(part);
    const { tokenIds, logprobs, policyVersions } = stream.end(false);
    assert.deepEqual([[...tokenIds], [...logprobs], policyVersions], [[5, 6, 9], [-5, -6, -9], { first: 1, last: 3 }]);
  }
  const stream = sglangRoute.openStream?.(makeRequest()) ?? assert.fail('no stream');
  stream.take(event([5], 1));
  assert.throws(() => stream.take(event([6], 4)), /2 tokens where it counts 4/);
  assert.throws(() => stream.end(false), /finish reason/);
  assert.equal(stream.end(true).finishReason, 'abort');
});

test('the options that keep ids intact are always sent, and a disabled top_k is sent as -1', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
  const backend = openSglangBackend({ id: backendId.parse('b1'), url: fake.url, dialect: 'sglang', policyVersion: 0, state: 'up' }, quiet);
  const { cachedTokens } = await backend.generate(makeRequest());
  assert.equal(cachedTokens, 2);
  const { sampling: sent, options } = fake.requests[0] ?? {};
  assert.deepEqual(
    [sent?.no_stop_trim, sent?.skip_special_tokens, sent?.spaces_between_special_tokens, sent?.top_k],
    [true, false, false, -1],
  );
  assert.deepEqual([options?.return_logprob, options?.logprob_start_len, options?.rid], [true, -1, 'r']);
});

test('a rank is sent as routed_dp_rank, and none without a rank', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
  const backend = openSglangBackend({ id: backendId.parse('b1'), url: fake.url, dialect: 'sglang', policyVersion: 0, state: 'up' }, quiet);
  await backend.generate(makeRequest({ rank: 2 }));
  await backend.generate(makeRequest());
  assert.deepEqual(
    fake.requests.map(({ options }) => options.routed_dp_rank),
    [2, undefined],
  );
});
