// Turns wait for room in the KV cache of their backend, uncharged, and give it back however they end.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Uncharged } from '@millrace/base/deadline';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import type { BackendRecord } from '@millrace/engines';
import { Ledger } from '@millrace/model';
import { backendId, definedOf, sampling } from '@millrace/protocol';
import { FakeBackend, type FakeBackendOptions, openFakeTokens, scriptedFaults } from '@millrace/testkit';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import { Sampler } from '../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const never = new AbortController().signal;
const promptIds = tokens.encode('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n');
/** One context fits, and two do not. */
const cacheTokens = promptIds.length + 1;

/** Its answers wait until they are let go. */
async function openHeldFake(options: Partial<FakeBackendOptions> = {}) {
  const fake = new FakeBackend({ policy: ({ turn }) => ({ text: `turn ${turn}` }), devMode: true, ...options }, tokens);
  await fake.listen();
  await fetch(`${fake.url}/pause?mode=keep`, { method: 'POST' });
  const answer = () => fetch(`${fake.url}/resume`, { method: 'POST' });
  return { fake, answer, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

function openPool(...records: readonly Partial<BackendRecord>[]) {
  const pool = new BackendPool({ log: silentLog, pace: new Pace(), holdForCache: true });
  const all = records.map((record, index) => toRecord(index, record));
  pool.update(all);
  return { pool, all, [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose]() };
}

function toRecord(index: number, record: Partial<BackendRecord>): BackendRecord {
  const id = backendId.parse('ab'[index]);
  return { id, url: '', dialect: 'vllm', policyVersion: 0, state: 'up', probe: { cacheTokens }, ...record };
}

function begin(pool: BackendPool, uncharged?: Uncharged, group?: string): Sampler {
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: promptIds, text: '', messages: [] });
  return new Sampler({ ledger, pool, sessionId: 'rollout', delayMs: 1, ...definedOf({ uncharged, group }) });
}

function sample(sampler: Sampler, signal: AbortSignal = never) {
  return sampler.sample({ sampling: sampling.parse({}), maxTokens: 50, stopTokenIds: [tokens.endOfTurnId], signal });
}

/** A rollout that samples, and fills the cache until it is answered. */
async function fillCache(pool: BackendPool, fake: FakeBackend) {
  const sampler = begin(pool);
  const requested = once(fake.events, 'request');
  const sampled = sample(sampler);
  await requested;
  return { sampler, sampled, [Symbol.dispose]: () => sampler[Symbol.dispose]() };
}

/** The way from a sampler to the gate takes a few turns of the event loop and no time. */
async function waitForHeld(pool: BackendPool, count: number): Promise<void> {
  while (Object.values(pool.heldForCache()).reduce((sum, held) => sum + held, 0) < count) await setImmediate();
}

test('a turn that does not fit waits while another samples, and its wait is not charged', async () => {
  await using server = await openHeldFake();
  await using opened = openPool({ url: server.fake.url });
  const { pool } = opened;
  using first = await fillCache(pool, server.fake);
  let uncharged = 0;
  using second = begin(pool, async (wait) => {
    uncharged += 1;
    return await wait();
  });
  const later = sample(second);
  await waitForHeld(pool, 1);
  assert.equal(server.fake.generations, 1);
  await server.answer();
  assert.equal((await first.sampled).finishReason, 'stop');
  assert.equal((await later).finishReason, 'stop');
  assert.ok(uncharged >= 1);
  assert.deepEqual(pool.heldForCache(), { a: 0 });
  assert.equal(first.sampler.cacheWaitMs, 0);
  const { counts } = pool.traffic.take();
  assert.equal(counts.get(backendId.parse('a'))?.cache_wait_ms, second.cacheWaitMs);
  assert.ok(second.cacheWaitMs > 0);
});

test('a rollout that is cancelled while it waits leaves its place to the next', async () => {
  await using server = await openHeldFake();
  await using opened = openPool({ url: server.fake.url });
  const { pool } = opened;
  using first = await fillCache(pool, server.fake);
  const cancel = new AbortController();
  using second = begin(pool);
  const cancelled = sample(second, cancel.signal);
  using third = begin(pool);
  const waiting = sample(third);
  await waitForHeld(pool, 2);
  cancel.abort(new Error('cancelled'));
  await assert.rejects(cancelled, /cancelled/);
  assert.deepEqual(pool.heldForCache(), { a: 1 });
  await server.answer();
  await Promise.all([first.sampled, waiting]);
});

test('rollouts that wait for a backend that breaks or leaves go to another', async () => {
  for (const change of ['break', 'leave'] as const) {
    await using slow = await openHeldFake();
    await using other = await openHeldFake();
    await other.answer();
    await using opened = openPool({ url: slow.fake.url }, { url: other.fake.url, state: 'draining' });
    const { pool, all } = opened;
    using first = await fillCache(pool, slow.fake);
    using second = begin(pool);
    const moved = sample(second);
    await waitForHeld(pool, 1);
    const [a, b] = all.map((record) => ({ ...record, state: 'up' as const }));
    if (!a || !b) throw new Error('there are two');
    const health = { brokenAtMs: 1, error: 'broken', errorAtMs: 1 };
    pool.update(change === 'break' ? [{ ...a, health }, b] : [b]);
    assert.equal((await moved).backend, 'b', change);
    await slow.answer();
    await first.sampled;
  }
});

test('a server that does not say what its cache holds is used as without admission', async () => {
  await using server = await openHeldFake();
  await using opened = openPool({ url: server.fake.url, probe: {} });
  const samplers = Array.from({ length: 20 }, () => begin(opened.pool));
  const sampled = samplers.map((sampler) => sample(sampler));
  while (server.fake.generations < samplers.length) await once(server.fake.events, 'request');
  await server.answer();
  await Promise.all(sampled);
  for (const sampler of samplers) sampler[Symbol.dispose]();
});

test('each data-parallel rank has its own cache', async () => {
  await using server = await openHeldFake({ ranks: 2 });
  await using opened = openPool({ url: server.fake.url, probe: { cacheTokens, ranks: 2 } });
  using first = begin(opened.pool);
  using second = begin(opened.pool);
  using third = begin(opened.pool);
  const sampled = [first, second, third].map((sampler) => sample(sampler));
  await waitForHeld(opened.pool, 1);
  while (server.fake.generations < 2) await once(server.fake.events, 'request');
  assert.equal(server.fake.generations, 2);
  await server.answer();
  await Promise.all(sampled);
});

test('what a turn should have found, and what was computed again, is counted', async () => {
  await using server = await openHeldFake();
  await server.answer();
  await using opened = openPool({ url: server.fake.url, probe: { cacheTokens: 1_000_000 } });
  const { pool } = opened;
  using sampler = begin(pool);
  const { tokenIds } = await sample(sampler);
  const after = promptIds.length + tokenIds.length;
  await sample(sampler);
  const count = pool.traffic.take().counts.get(backendId.parse('a'));
  assert.equal(count?.expected_tokens, after);
  // The fake finds all but the last block of what it is sent, and the second prompt is the first one again.
  assert.equal(count?.recomputed_tokens, after - (count?.cached_tokens ?? 0) / 2);
});

test('calls that fail or are cut give their turn up: all rollouts get theirs, and no one waits for what is over', async () => {
  await using server = await openHeldFake({ faults: scriptedFaults(['http-500', 'abort', 'http-500']) });
  await server.answer();
  await using opened = openPool({ url: server.fake.url });
  const { pool } = opened;
  using first = begin(pool);
  using second = begin(pool);
  const sampled = sample(first);
  const later = sample(second);
  const turns = await Promise.all([sampled, later]);
  assert.equal(
    turns.reduce((sum, { retries }) => sum + retries, 0),
    3,
  );
  assert.deepEqual(pool.heldForCache(), { a: 0 });
});

test('a pool that closes lets all go that wait', async () => {
  await using server = await openHeldFake();
  const { pool } = openPool({ url: server.fake.url });
  using first = await fillCache(pool, server.fake);
  using second = begin(pool);
  const later = sample(second);
  await waitForHeld(pool, 1);
  await pool[Symbol.asyncDispose]();
  await Promise.all([assert.rejects(first.sampled), assert.rejects(later)]);
});

test('siblings share their opening: a context that does not fit alone fits next to one of its group', async () => {
  await using server = await openHeldFake();
  await using opened = openPool({ url: server.fake.url });
  const samplers = Array.from({ length: 3 }, () => begin(opened.pool, undefined, 'group'));
  const sampled = samplers.map((sampler) => sample(sampler));
  while (server.fake.generations < samplers.length) await once(server.fake.events, 'request');
  await server.answer();
  await Promise.all(sampled);
  for (const sampler of samplers) sampler[Symbol.dispose]();
});

test('with other workers on the backend a worker asks for its part only under pressure, and uses it until they have gone', async () => {
  await using server = await openHeldFake();
  await using opened = openPool({ url: server.fake.url, probe: { cacheTokens: 4 * promptIds.length } });
  const { pool } = opened;
  const id = backendId.parse('a');
  using first = await fillCache(pool, server.fake);
  const asked: unknown[] = [];
  const divide = async (inFlight: number, tokens: number) => {
    pool.updateLoads([{ id, inFlight, tokens }]);
    await pool.divideCaches(async (caches) => {
      asked.push(...caches);
      return [{ id, rollouts: [] }];
    });
  };
  await divide(9, 4 * promptIds.length);
  await divide(1, 100 * promptIds.length);
  assert.deepEqual(asked, [], 'there is room for all, or it is alone');
  await divide(9, 100 * promptIds.length);
  assert.deepEqual(asked, [{ id, tokens: 4 * promptIds.length }]);
  using second = begin(pool);
  const later = sample(second);
  await waitForHeld(pool, 1);
  const next = once(server.fake.events, 'request');
  await divide(9, 4 * promptIds.length);
  await next;
  await server.answer();
  await Promise.all([first.sampled, later]);
});
