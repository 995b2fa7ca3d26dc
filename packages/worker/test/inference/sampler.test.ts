// Sampling survives failing backends: it continues from the same ids, on another backend if there is one, and counts the retries.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Deadline } from '@millrace/base/deadline';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import type { BackendRecord } from '@millrace/engines';
import { Ledger } from '@millrace/model';
import { backendId, RolloutError, sampling } from '@millrace/protocol';
import { FakeBackend, type FakeBackendOptions, FakeClock, fakeLogprob, openFakeTokens, scriptedFaults } from '@millrace/testkit';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import { Sampler } from '../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const never = new AbortController().signal;
const quiet = { log: silentLog, pace: new Pace() };

async function openFake(options: Partial<FakeBackendOptions> = {}): Promise<FakeBackend> {
  const fake = new FakeBackend({ policy: ({ turn }) => ({ text: `turn ${turn}` }), ...options }, tokens);
  await fake.listen();
  return fake;
}

function toRecord(id: string, { url }: FakeBackend, changes: Partial<BackendRecord> = {}): BackendRecord {
  return { id: backendId.parse(id), url, dialect: 'vllm', policyVersion: 0, state: 'up', ...changes };
}

function begin(pool: BackendPool, uncharged?: <T>(wait: () => Promise<T>) => Promise<T>): Sampler {
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: tokens.encode('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n'), text: '', messages: [] });
  return new Sampler({ ledger, pool, sessionId: 'rollout-1', delayMs: 1, ...(uncharged ? { uncharged } : {}) });
}

function sample(sampler: Sampler, signal: AbortSignal = never) {
  return sampler.sample({ sampling: sampling.parse({}), maxTokens: 50, stopTokenIds: [tokens.endOfTurnId], signal });
}

test('a rollout stays on its backend to its end', async () => {
  await using a = await openFake();
  await using b = await openFake();
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', a), toRecord('b', b)]);
  {
    using sampler = begin(pool);
    for (let turn = 0; turn < 4; turn++) assert.equal((await sample(sampler)).backend, 'a');
    using second = begin(pool);
    assert.equal((await sample(second)).backend, 'b');
    assert.deepEqual(pool.inFlight(), { a: 1, b: 1 });
  }
  assert.deepEqual(pool.inFlight(), { a: 0, b: 0 });
});

test('a failed call is retried elsewhere from the same ids, and counted', async () => {
  await using a = await openFake({ faults: scriptedFaults(['http-500']) });
  await using b = await openFake({ faults: scriptedFaults(['misaligned']) });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', a), toRecord('b', b)]);
  using sampler = begin(pool);
  const turn = await sample(sampler);
  assert.equal(turn.retries, 2);
  assert.equal(turn.backend, 'a');
  assert.deepEqual(a.requests[1]?.promptIds, b.requests[0]?.promptIds);
  assert.deepEqual(a.requests[0]?.promptIds, a.requests[1]?.promptIds);
  assert.notEqual(a.requests[0]?.headers['x-request-id'], a.requests[1]?.headers['x-request-id']);
  for (const [i, id] of turn.tokenIds.entries()) assert.equal(turn.logprobs[i], fakeLogprob(sampler.ledger.length + i, id));
});

test('if every attempt fails, the last error is thrown and the ledger is unchanged', async () => {
  await using fake = await openFake({ faults: () => 'reset' });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', fake)]);
  using sampler = begin(pool);
  const before = sampler.ledger.promptJson.toString();
  await assert.rejects(sample(sampler), (error) => error instanceof RolloutError && error.code === 'backend-failed');
  assert.equal(fake.generations, 4);
  assert.equal(sampler.ledger.promptJson.toString(), before);
});

test('a refused request is not retried', async () => {
  await using fake = await openFake({ faults: () => 'http-400' });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', fake)]);
  using sampler = begin(pool);
  await assert.rejects(sample(sampler), (error) => error instanceof RolloutError && error.code === 'backend-refused');
  assert.equal(fake.generations, 1);
});

test('waiting for a backend and proving it are uncharged, sampling is not', async () => {
  await using fake = await openFake();
  await using pool = new BackendPool(quiet);
  let waits = 0;
  const waiting = Promise.withResolvers<void>();
  using sampler = begin(pool, async (wait) => {
    waits += 1;
    waiting.resolve();
    try {
      return await wait();
    } finally {
      waits -= 1;
    }
  });
  const waitsWhileSampling: number[] = [];
  fake.events.on('request', () => waitsWhileSampling.push(waits));
  const turn = sample(sampler);
  await waiting.promise;
  pool.update([toRecord('a', fake)]);
  assert.equal((await turn).backend, 'a');
  await sample(sampler);
  assert.deepEqual(waitsWhileSampling, [0, 0]);
});

test('a rollout moves on when its backend has left between turns', async () => {
  await using a = await openFake();
  await using b = await openFake();
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', a), toRecord('b', b)]);
  using sampler = begin(pool);
  assert.equal((await sample(sampler)).backend, 'a');
  pool.update([toRecord('b', b)]);
  const moved = await sample(sampler);
  assert.equal(moved.backend, 'b');
  assert.equal(moved.retries, 0);
  assert.deepEqual(pool.inFlight(), { b: 1 });
});

test('a turn names the weights at its start and at its end', async () => {
  await using fake = await openFake({ faults: scriptedFaults([{ lateMs: 20 }]) });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', fake, { policyVersion: 1 })]);
  using sampler = begin(pool);
  fake.events.once('request', () => pool.update([toRecord('a', fake, { policyVersion: 2 })]));
  assert.deepEqual((await sample(sampler)).policyVersions, { first: 1, last: 2 });
  assert.deepEqual((await sample(sampler)).policyVersions, { first: 2, last: 2 });
});

test('an abort while the backend hangs ends the turn at once, and closes the connection', async () => {
  await using fake = await openFake({ faults: () => 'hang' });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', fake)]);
  using sampler = begin(pool);
  const controller = new AbortController();
  const gone = once(fake.events, 'abort');
  fake.events.once('request', () => controller.abort(new Error('cancelled')));
  await assert.rejects(sample(sampler, controller.signal), /cancelled/);
  await gone;
  assert.equal(fake.generations, 1);
});

test('a hundred rollouts over three backends, one of which dies, all get their turns', async () => {
  await using a = await openFake();
  await using b = await openFake();
  const c = await openFake({ latencyMs: 5 });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', a), toRecord('b', b), toRecord('c', c)]);
  const samplers = Array.from({ length: 100 }, () => begin(pool));
  const first = Promise.all(samplers.map((sampler) => sample(sampler)));
  await once(c.events, 'request');
  await c[Symbol.asyncDispose]();
  const turns = [...(await first), ...(await Promise.all(samplers.map((sampler) => sample(sampler))))];
  assert.equal(turns.filter(({ finishReason }) => finishReason === 'stop').length, 200);
  assert.equal(turns.slice(100).filter(({ backend }) => backend === 'c').length, 0);
  for (const sampler of samplers) sampler[Symbol.dispose]();
  assert.deepEqual(pool.inFlight(), { a: 0, b: 0, c: 0 });
});

test('failed calls and the pauses after them are not charged; the answered call is', async () => {
  const clock = new FakeClock();
  using deadline = new Deadline('run', 10_000, clock);
  await using fake = await openFake({ faults: scriptedFaults(['http-500', 'hang']) });
  await using pool = new BackendPool({ ...quiet, stallMs: 500 });
  pool.update([toRecord('a', fake)]);
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: tokens.encode('hi'), text: '', messages: [] });
  // Each call takes 1 s of the agent's clock, and each wait lets far more pass.
  const uncharged = <T>(wait: () => Promise<T>) =>
    deadline.uncharged(() => {
      const waited = wait();
      clock.advance(200_000);
      return waited;
    });
  using sampler = new Sampler({ ledger, pool, sessionId: 'r', delayMs: 60_000, clock, uncharged, refund: (ms) => deadline.refund(ms) });
  fake.events.on('request', () => clock.advance(1000));
  const { retries } = await sample(sampler);
  assert.equal(retries, 2);
  assert.equal(deadline.chargedMs, 1000);
});

test('a backend that hangs costs a retry on another one, not the rollout', async () => {
  await using a = await openFake({ faults: () => 'hang' });
  await using b = await openFake();
  await using pool = new BackendPool({ ...quiet, stallMs: 500 });
  pool.update([toRecord('a', a), toRecord('b', b)]);
  using sampler = begin(pool);
  const { backend, retries } = await sample(sampler);
  assert.deepEqual([backend, retries], ['b', 1]);
});

test('a rollout that moves between servers of different dialects gets the same tokens', async () => {
  await using a = await openFake({ faults: scriptedFaults([undefined, 'reset', 'reset']) });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', a, { dialect: 'llamacpp' }), toRecord('b', a, { dialect: 'sglang' }), toRecord('c', a, { dialect: 'vllm' })]);
  using sampler = begin(pool);
  const turns = [await sample(sampler), await sample(sampler)];
  assert.deepEqual(turns[0]?.tokenIds, turns[1]?.tokenIds);
  assert.deepEqual(turns[0]?.logprobs, turns[1]?.logprobs);
  assert.equal(new Set(a.requests.map(({ route }) => route)).size, 2);
});

test('weights that a server reports are those of the turn', async () => {
  await using fake = await openFake({ weightVersion: '12' });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', fake, { dialect: 'sglang', policyVersion: 3 })]);
  using sampler = begin(pool);
  assert.deepEqual((await sample(sampler)).policyVersions, { first: 12, last: 12 });
});

test('a rollout keeps its data-parallel rank over its turns, and another rollout gets another rank', async () => {
  await using fake = await openFake({ ranks: 2 });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord('a', fake, { probe: { ranks: 2 } })]);
  using first = begin(pool);
  using second = begin(pool);
  for (let turn = 0; turn < 3; turn++) for (const sampler of [first, second]) await sample(sampler);
  const ranks = fake.requests.map(({ headers }) => headers['x-data-parallel-rank']);
  assert.equal(new Set(ranks.filter((_, i) => i % 2 === 0)).size, 1);
  assert.deepEqual(new Set(ranks), new Set(['0', '1']));
});
