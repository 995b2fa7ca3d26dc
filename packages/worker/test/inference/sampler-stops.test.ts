// Stop strings, minimums and structures of a turn that is cut while it is sampled: the turn ends where it would have ended uncut.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { Ledger } from '@millrace/model';
import { backendId, type SamplingInput, sampling } from '@millrace/protocol';
import { FakeBackend, openFakeTokens } from '@millrace/testkit';
import { findStopString } from '../../src/agent/stop-string.ts';
import { PolicyGate } from '../../src/inference/policy-gate.ts';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import type { SampledTurn } from '../../src/inference/sampled-turn.ts';
import { Sampler } from '../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const said = 'one two three four five six seven eight nine ten';
const turnIds = [...tokens.encode(said)];

/** Samples one turn that is cut after `cutAt` tokens, and continued; 0: never cut. */
async function sampleCut(given: SamplingInput, cutAt: number) {
  await using fake = new FakeBackend({ policy: () => ({ text: said }), tokenMs: cutAt > 0 ? 20 : 0 }, tokens);
  await fake.listen();
  await using pool = new BackendPool({ log: silentLog, pace: new Pace() });
  // On this route closing the connection cuts, token by token.
  pool.update([{ id: backendId.parse('a'), url: fake.url, dialect: 'vllm-completions', policyVersion: 0, state: 'up' }]);
  const idle = Promise.withResolvers<void>();
  const gate = new PolicyGate({ onIdle: () => idle.resolve() });
  gate.update({ state: 'running', pause: 0, flushes: 0, policyVersion: 0 });
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: tokens.encode('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n'), text: '', messages: [] });
  using sampler = new Sampler({ ledger, pool, gate, sessionId: 'r', delayMs: 1 });
  const parts: SampledTurn[] = [];
  const keep = (part: SampledTurn) => {
    parts.push(part);
    ledger.appendSampled({ ...part, text: '', messages: [] });
  };
  const asked = sampling.parse(given);
  const findStop = (ids: Int32Array) => findStopString(ids, asked, async (some) => tokens.decode(some));
  const stopTokenIds = [tokens.endOfTurnId, ...(asked.stop_token_ids ?? [])];
  const turn = sampler.sample({
    sampling: asked,
    maxTokens: 40,
    stopTokenIds,
    signal: new AbortController().signal,
    onPart: keep,
    findStop,
  });
  if (cutAt > 0) {
    for (let count = 0; count < cutAt; ) [count] = await once(fake.events, 'tokens');
    gate.update({ state: 'pausing', mode: 'abort', pause: 1, flushes: 0, policyVersion: 0 });
    await idle.promise;
    gate.update({ state: 'running', pause: 1, flushes: 0, policyVersion: 0 });
  }
  keep(await turn);
  return { parts, requests: fake.requests, ids: parts.flatMap(({ tokenIds }) => [...tokenIds]), last: parts.at(-1) };
}

test('a stop string that a cut divides still ends the turn, and what was sampled after it is not part of the turn', async () => {
  // The policy continues the turn, and the server sees only the second half of the string.
  const whole = await sampleCut({ stop: ['six seven eight nine'] }, 0);
  const cut = await sampleCut({ stop: ['six seven eight nine'] }, 8);
  assert.deepEqual(whole.ids, turnIds.slice(0, 9));
  assert.deepEqual([whole.last?.finishReason, whole.last?.stoppedBy], ['stop', 'six seven eight nine']);
  assert.ok(cut.parts.length > 1, 'it was cut');
  assert.deepEqual(cut.ids, whole.ids);
  assert.deepEqual(
    [cut.last?.finishReason, cut.last?.stoppedBy, cut.last?.logprobs.length],
    ['stop', 'six seven eight nine', cut.last?.tokenIds.length],
  );
});

test('a turn that continues after a cut has only the rest of its minimum left', async () => {
  const { parts, requests } = await sampleCut({ min_tokens: 9 }, 3);
  assert.ok(parts.length > 1);
  assert.deepEqual(
    requests.map(({ sampling: { min_tokens } }) => min_tokens),
    [9, 9 - (parts[0]?.tokenIds.length ?? 0)],
  );
});

test('a turn with a structure is sampled again as a whole: its grammar would begin again in the middle', async () => {
  const { parts, requests, ids } = await sampleCut({ structured_outputs: { regex: '.*' } }, 3);
  assert.deepEqual([parts.length, requests.length, parts[0]?.retries], [1, 2, 1]);
  assert.deepEqual(ids, [...turnIds, tokens.endOfTurnId]);
  assert.deepEqual(requests[1]?.promptIds, requests[0]?.promptIds);
});

test('any token can be a stop token, and the turn says which', async () => {
  const third = turnIds[2] ?? 0;
  const { ids, last } = await sampleCut({ stop_token_ids: [third] }, 0);
  assert.deepEqual([ids, last?.stoppedBy], [turnIds.slice(0, 3), third]);
});

test('a stop string before the minimum does not count, one that ends after it does', async () => {
  const ids = Int32Array.from(tokens.encode('stop it, stop it, stop it'));
  const find = (min_tokens: number) => findStopString(ids, { stop: ['stop it'], min_tokens }, async (some) => tokens.decode(some));
  const first = await find(0);
  assert.equal(tokens.decode(ids.subarray(0, first?.tokens)), 'stop it');
  assert.equal(tokens.decode(ids.subarray(0, (await find(3))?.tokens)), 'stop it, stop it');
  assert.equal(await find(ids.length), undefined);
});
