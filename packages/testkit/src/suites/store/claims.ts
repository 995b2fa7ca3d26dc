// The store's promises about claims: who may write a rollout, and that late writes change nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Claim, Store } from '@millrace/store';
import {
  claimOne,
  leaseMs,
  makeFailure,
  makeId,
  makeResult,
  makeTrajectory,
  maxLosses,
  moveUpTo,
  type OpenBed,
  openTimedBed,
  registerWorker,
  submitAll,
} from './bed/bed.ts';

export function defineClaimTests(openBed: OpenBed): void {
  test('a claim takes the oldest rollouts first, moves them to init and increments their attempt', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const createdAtMs = bed.clock.now();
    await submitAll(bed.store, ['c', 'b', 'a']);
    bed.clock.advance(5);
    const claims = await bed.store.claim(worker, 2);
    assert.deepEqual(
      claims.map(({ id, attempt }) => [id, attempt]),
      [
        ['c', 1],
        ['b', 1],
      ],
    );
    assert.deepEqual(
      claims.map((claim) => [claim.createdAtMs, claim.queuedAtMs, claim.retries]),
      [
        [createdAtMs, createdAtMs, 0],
        [createdAtMs, createdAtMs, 0],
      ],
    );
    const record = await bed.store.get(makeId('c'));
    assert.deepEqual([record?.state, record?.attempt, record?.worker], ['init', 1, 'w']);
    assert.deepEqual(claims[0]?.submission, record?.submission);
  });

  test('two processes that claim concurrently never get the same rollout', async () => {
    await using bed = await openTimedBed(openBed);
    const other = await bed.another();
    const ids = Array.from({ length: 200 }, (_, index) => `r${index}`);
    await submitAll(bed.store, ids);
    const handles = await Promise.all(
      [bed.store, other].map(async (store, index) => ({ store, worker: await registerWorker(store, `w${index}`) })),
    );
    const claims = await Promise.all(
      ids.map((_, index) => handles[index % 2]).map(async (handle) => (handle ? handle.store.claim(handle.worker, 2) : [])),
    );
    assert.deepEqual(
      claims
        .flat()
        .map(({ id }) => id)
        .sort(),
      [...ids].sort(),
    );
  });

  test('a rollout goes through its stages under its claim, and an illegal move is refused', async () => {
    await using bed = await openTimedBed(openBed);
    const claim = await claimOne(bed.store, { id: 'a', worker: await registerWorker(bed.store, 'w') });
    await assert.rejects(bed.store.move(claim, 'evaluate'), /cannot move from init to evaluate/);
    for (const state of ['ready', 'run', 'evaluate'] as const) {
      assert.equal(await bed.store.move(claim, state), true);
      assert.equal((await bed.store.get(claim.id))?.state, state);
    }
  });

  test('a failed write does not affect concurrent writes', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await submitAll(bed.store, ['a', 'b', 'c']);
    const claims = await bed.store.claim(worker, 3);
    const moved = await Promise.allSettled(claims.map((claim, index) => bed.store.move(claim, index === 1 ? 'evaluate' : 'ready')));
    assert.deepEqual(
      moved.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    const states = (await bed.store.list({ limit: 9 })).rollouts.map(({ state }) => state);
    assert.deepEqual(states, ['ready', 'init', 'ready']);
  });

  test('an ending, its result and its trajectory become visible together, exact to the bit', async () => {
    await using bed = await openTimedBed(openBed);
    const claim = await claimOne(bed.store, { id: 'a', worker: await registerWorker(bed.store, 'w') });
    await moveUpTo(bed.store, claim, 'evaluate');
    const trajectory = makeTrajectory('a', 1);
    assert.equal(await bed.store.trajectory(claim.id), undefined);
    assert.equal(await bed.store.finish(claim, { state: 'done', result: makeResult(0.5), trajectory }), true);
    const other = await bed.another();
    const record = await other.get(claim.id);
    assert.deepEqual([record?.state, record?.worker, record?.endedAtMs], ['done', undefined, bed.clock.now()]);
    assert.deepEqual(record?.result, makeResult(0.5));
    assert.deepEqual(await other.trajectory(claim.id), trajectory);
    assert.equal(await bed.store.finish(claim, { state: 'failed', failure: makeFailure('internal', 1) }), false);
    assert.equal((await other.get(claim.id))?.state, 'done');
  });

  test('failed and cancelled rollouts keep their failure, result and trajectory', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const failed = await claimOne(bed.store, { id: 'f', worker });
    const failure = makeFailure('init-failed', 1);
    await bed.store.finish(failed, { state: 'failed', failure });
    const cancelled = await claimOne(bed.store, { id: 'c', worker });
    await bed.store.finish(cancelled, { state: 'cancelled', result: makeResult(null), trajectory: makeTrajectory('c', 1) });
    assert.deepEqual((await bed.store.get(failed.id))?.failure, failure);
    assert.deepEqual((await bed.store.get(cancelled.id))?.result?.reward, null);
    assert.deepEqual(await bed.store.trajectory(cancelled.id), makeTrajectory('c', 1));
  });

  test('a retry is counted and recorded, and not claimed before its delay', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const claim = await claimOne(bed.store, { id: 'a', worker });
    const failure = makeFailure('backend-failed', 1);
    assert.equal(await bed.store.retry(claim, failure, { delayMs: 1_000 }), true);
    const record = await bed.store.get(claim.id);
    assert.deepEqual([record?.state, record?.retries, record?.losses, record?.worker], ['queued', 1, 0, undefined]);
    assert.deepEqual(record?.failures, [failure]);
    assert.equal(record?.failure, undefined);
    bed.clock.advance(999);
    assert.deepEqual(await bed.store.claim(worker, 1), []);
    bed.clock.advance(1);
    const [again] = await bed.store.claim(worker, 1);
    assert.deepEqual([again?.attempt, again?.retries, again?.queuedAtMs], [2, 1, bed.clock.now() - 1_000]);
  });

  test('a release counts neither a retry nor a loss', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const claim = await claimOne(bed.store, { id: 'a', worker });
    assert.equal(await bed.store.release(claim), true);
    const record = await bed.store.get(claim.id);
    assert.deepEqual([record?.state, record?.retries, record?.losses, record?.failures], ['queued', 0, 0, []]);
    assert.equal((await bed.store.claim(worker, 1))[0]?.attempt, 2);
  });

  test('a rollout that was asked to cancel ends instead of returning to the queue', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const [released, retried] = [await claimOne(bed.store, { id: 'a', worker }), await claimOne(bed.store, { id: 'b', worker })];
    for (const { id } of [released, retried]) await bed.store.cancel(id, { tombstoneMs: 0 });
    assert.equal(await bed.store.release(released), true);
    assert.equal(await bed.store.retry(retried, makeFailure('sandbox-died', 1), { delayMs: 0 }), true);
    assert.deepEqual(
      (await bed.store.list({ limit: 9 })).rollouts.map(({ state }) => state),
      ['cancelled', 'cancelled'],
    );
    assert.deepEqual(await bed.store.claim(worker, 9), []);
  });

  test('a worker that lost its lease can write nothing, before and after another worker takes over', async () => {
    await using bed = await openTimedBed(openBed);
    const slow = await claimOne(bed.store, { id: 'a', worker: await registerWorker(bed.store, 'slow') });
    bed.clock.advance(leaseMs);
    assert.equal(await bed.store.expire({ leaseMs, maxLosses }), 1);
    await assertFenced(bed.store, slow);
    const [successor] = await bed.store.claim(await registerWorker(bed.store, 'successor'), 1);
    assert.equal(successor?.attempt, 2);
    await assertFenced(bed.store, slow);
    const record = await bed.store.get(slow.id);
    assert.deepEqual([record?.state, record?.worker, record?.attempt, record?.retries], ['init', 'successor', 2, 0]);
    assert.equal(await bed.store.trajectory(slow.id), undefined);
  });

  test('a write under an old attempt of the same worker changes nothing', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const old = await claimOne(bed.store, { id: 'a', worker });
    await bed.store.release(old);
    await bed.store.claim(worker, 1);
    await assertFenced(bed.store, old);
    await assertFenced(bed.store, { ...old, id: makeId('never-submitted') });
  });
}

async function assertFenced(store: Store, claim: Claim): Promise<void> {
  const before = await store.lastEventId();
  assert.equal(await store.move(claim, 'ready'), false);
  assert.equal(await store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory('a', 1) }), false);
  assert.equal(await store.retry(claim, makeFailure('internal', 1), { delayMs: 0 }), false);
  assert.equal(await store.release(claim), false);
  assert.equal(await store.lastEventId(), before);
}
