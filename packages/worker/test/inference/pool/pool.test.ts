// The pool: leases go to the least loaded backend, stay there, and move only if it failed or left.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import type { BackendRecord } from '@millrace/engines';
import { backendId, RolloutError } from '@millrace/protocol';
import { BackendPool } from '../../../src/inference/pool/pool.ts';

const signal = new AbortController().signal;
const quiet = { log: silentLog, pace: new Pace() };

function makeRecord(id: string, changes: Partial<BackendRecord> = {}): BackendRecord {
  return { id: backendId.parse(id), url: `http://127.0.0.1:1/${id}`, dialect: 'vllm', policyVersion: 0, state: 'up', ...changes };
}

function openPool(...ids: string[]): BackendPool {
  const pool = new BackendPool(quiet);
  pool.update(ids.map((id) => makeRecord(id)));
  return pool;
}

test('leases are spread over the backends, and returned once', async () => {
  await using pool = openPool('b', 'a');
  const leases = [await pool.acquire({ signal }), await pool.acquire({ signal }), await pool.acquire({ signal })];
  assert.deepEqual(
    leases.map(({ id }) => String(id)),
    ['a', 'b', 'a'],
  );
  assert.deepEqual(pool.inFlight(), { b: 1, a: 2 });
  leases[0]?.[Symbol.dispose]();
  leases[0]?.[Symbol.dispose]();
  assert.deepEqual(pool.inFlight(), { b: 1, a: 1 });
});

test('rollouts that come before any backend wait for one, first come, first served', async () => {
  await using pool = new BackendPool(quiet);
  const order: number[] = [];
  const waits = [0, 1, 2].map((i) => pool.acquire({ signal }).finally(() => order.push(i)));
  pool.update([]);
  pool.update([makeRecord('a', { state: 'draining' })]);
  assert.deepEqual(order, []);
  pool.update([makeRecord('a')]);
  for (const lease of await Promise.all(waits)) assert.equal(lease.id, 'a');
  assert.deepEqual(order, [0, 1, 2]);
  assert.deepEqual(pool.inFlight(), { a: 3 });
});

test('an aborted wait rejects with its reason, and takes no lease', async () => {
  await using pool = new BackendPool(quiet);
  const controller = new AbortController();
  const wait = pool.acquire({ signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(wait, /enough/);
  pool.update([makeRecord('a')]);
  await assert.rejects(pool.acquire({ signal: controller.signal }), /enough/);
  assert.deepEqual(pool.inFlight(), { a: 0 });
});

test('closing the pool ends every wait', async () => {
  const pool = new BackendPool(quiet);
  const wait = pool.acquire({ signal });
  await pool[Symbol.asyncDispose]();
  await assert.rejects(wait, /closed/);
});

test('a draining backend gets no new rollouts and keeps the ones it has', async () => {
  await using pool = openPool('a', 'b');
  const lease = await pool.acquire({ signal });
  pool.update([makeRecord('a', { state: 'draining' }), makeRecord('b')]);
  assert.equal(lease.backend?.id, 'a');
  assert.equal((await pool.acquire({ signal })).id, 'b');
  assert.equal((await pool.acquire({ signal })).id, 'b');
  assert.deepEqual(pool.inFlight(), { a: 1, b: 2 });
});

test('a backend that has left is gone for running rollouts too, even if it joins again', async () => {
  await using pool = openPool('a', 'b');
  const lease = await pool.acquire({ signal });
  pool.update([makeRecord('b')]);
  assert.equal(lease.backend, undefined);
  pool.update([makeRecord('a'), makeRecord('b')]);
  assert.equal(lease.backend, undefined);
  assert.deepEqual(pool.inFlight(), { b: 0, a: 0 });
  const moved = await pool.move(lease, { signal, reason: 'failed' });
  assert.ok(moved.backend);
  assert.equal(pool.inFlight()[moved.id], 1);
});

test('a lease shows its changed record: new weights keep the rollouts and their counts', async () => {
  await using pool = openPool('a');
  const lease = await pool.acquire({ signal });
  const before = lease.backend;
  pool.update([makeRecord('a')]);
  assert.equal(lease.backend, before);
  pool.update([makeRecord('a', { policyVersion: 7 })]);
  assert.equal(lease.backend?.policyVersion, 7);
  assert.deepEqual(pool.inFlight(), { a: 1 });
});

test('after a failure another backend is taken if there is one', async () => {
  await using pool = openPool('a', 'b');
  const lease = await pool.acquire({ signal });
  const other = await pool.move(lease, { signal, reason: 'failed' });
  assert.equal(other.id, 'b');
  assert.deepEqual(pool.inFlight(), { a: 0, b: 1 });
});

test('after a failure the only backend is kept, draining or not', async () => {
  await using pool = openPool('a');
  const lease = await pool.acquire({ signal });
  assert.equal(await pool.move(lease, { signal, reason: 'failed' }), lease);
  pool.update([makeRecord('a', { state: 'draining' })]);
  assert.equal(await pool.move(lease, { signal, reason: 'failed' }), lease);
  assert.deepEqual(pool.inFlight(), { a: 1 });
});

const generation = { tokenIds: Int32Array.of(1, 2), logprobs: Float32Array.of(-1, -1), finishReason: 'stop' } as const;

test('a call counts until its report, and only the first report counts', async () => {
  await using pool = openPool('a');
  const lease = await pool.acquire({ signal });
  const call = lease.startCall();
  assert.deepEqual(pool.calls(), { a: 1 });
  call.progress(1);
  call.report({ kind: 'answered', promptTokens: 7, generation });
  call.report({ kind: 'failed', error: new RolloutError('backend-failed', 'too late') });
  call.progress(9);
  assert.deepEqual(pool.calls(), { a: 0 });
  const { counts, errors } = pool.traffic.take();
  const { model_ms: _, ...count } = counts.get(lease.id) ?? assert.fail('nothing was counted');
  const cache = { cached_tokens: 0, expected_tokens: 0, recomputed_tokens: 0, cache_wait_ms: 0 };
  assert.deepEqual(count, { calls: 1, retries: 0, prompt_tokens: 7, ...cache, sampled_tokens: 2, errors: {} });
  assert.deepEqual([errors.size, pool.traffic.sampledTokens, lease.turns], [0, 2, 1]);
});

test('a call that its rollout stopped says nothing about the backend', async () => {
  await using pool = openPool('a');
  const lease = await pool.acquire({ signal });
  lease.startCall().report({ kind: 'stopped' });
  assert.deepEqual([pool.calls(), pool.traffic.take().counts.size, lease.turns], [{ a: 0 }, 0, 0]);
});

test('asking whether a rollout should move changes nothing', async () => {
  await using pool = openPool('a', 'b');
  const lease = await pool.acquire({ signal });
  for (let i = 0; i < 20; i++) assert.equal(pool.shouldMove(lease), false);
  assert.equal(lease.turns, 0);
});

test('leases are spread over the data-parallel ranks of a backend, each keeps its rank, and a rank is given back', async () => {
  await using pool = new BackendPool(quiet);
  pool.update([makeRecord('a', { probe: { ranks: 4 } })]);
  const leases = await Promise.all(Array.from({ length: 8 }, () => pool.acquire({ signal })));
  const ranks = leases.map(({ rank }) => rank);
  assert.deepEqual(ranks.toSorted(), [0, 0, 1, 1, 2, 2, 3, 3]);
  leases[0]?.[Symbol.dispose]();
  leases[0]?.[Symbol.dispose]();
  assert.equal((await pool.acquire({ signal })).rank, ranks[0]);
  // A server that was restarted with fewer ranks refuses the others.
  pool.update([makeRecord('a', { probe: { ranks: 2 } })]);
  assert.deepEqual(
    leases.map(({ rank }) => rank),
    ranks.map((rank) => (rank !== undefined && rank < 2 ? rank : undefined)),
  );
});

test('a backend with one rank, or an unknown number, is sent none', async () => {
  await using pool = new BackendPool(quiet);
  for (const probe of [{}, { ranks: 1 }]) {
    pool.update([makeRecord('a', { probe })]);
    assert.equal((await pool.acquire({ signal })).rank, undefined);
  }
});
