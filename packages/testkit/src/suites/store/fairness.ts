// The store's promises about the order of claims: priorities, fair shares between classes of work, and counts that agree with the rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rolloutStates } from '@millrace/protocol';
import type { Store } from '@millrace/store';
import {
  claimOne,
  leaseMs,
  makeFailure,
  makeId,
  makeReport,
  makeRollout,
  maxLosses,
  moveUpTo,
  type OpenBed,
  openTimedBed,
  registerWorker,
  roomy,
  submitAll,
} from './bed/bed.ts';
import { makeBatch, makeGroup, toBatch, toGroup } from './bed/bed-batches.ts';

function makeIds(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}${index}`);
}

async function submitAs(store: Store, key: string, ids: readonly string[], weight = 1): Promise<void> {
  const workClass = { kind: 'plain', name: key, weight } as const;
  await store.submit(
    ids.map((id) => makeRollout(id)),
    { ...roomy, workClass },
  );
}

export function defineFairnessTests(openBed: OpenBed): void {
  test('a higher priority is claimed first, and equal priorities in the order of submission', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    for (const [id, priority] of [
      ['a', undefined],
      ['low', -1],
      ['b', 0],
      ['high', 5],
    ] as const)
      await bed.store.submit([makeRollout(id, priority === undefined ? {} : { priority })], roomy);
    const claims = await bed.store.claim(worker, 9);
    assert.deepEqual(
      claims.map(({ id }) => id),
      ['high', 'a', 'b', 'low'],
    );
  });

  test('keys and batches share the claims by their weights, and a key with a long queue delays no other', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await submitAs(bed.store, 'k1', makeIds('a', 100));
    await bed.store.claim(worker, 8);
    await submitAs(bed.store, 'k2', makeIds('b', 100), 2);
    await bed.store.createBatch(makeBatch('t', { count: 40, target: 40, weight: 4 }));
    for (let begun = 0; begun < 40; begun += 1) await bed.store.beginGroup(makeGroup('t', begun));
    const claims = await bed.store.claim(worker, 48);
    const count = (start: string) => claims.filter(({ id }) => id.startsWith(start)).length;
    assert.deepEqual([count('a'), count('b'), count('t')], [0, 16, 32], 'the first key already has its share of 56');
  });

  test('more classes than slots take turns', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    for (const key of ['a', 'b', 'c', 'd']) await submitAs(bed.store, key, makeIds(key, 4));
    const order: string[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      const [claim] = await bed.store.claim(worker, 1);
      assert.ok(claim);
      order.push(claim.id.slice(0, 1));
      await bed.store.finish(claim, { state: 'cancelled' });
    }
    assert.deepEqual(order, ['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd']);
  });

  test('replacements and the last groups of a batch go first', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await submitAs(store, '', makeIds('plain', 20));
    await store.createBatch(makeBatch('b', { target: 2, count: 8 }));
    for (const begun of [0, 1, 2]) await store.beginGroup(makeGroup('b', begun));
    await store.replaceSiblings(toGroup('b:0'), makeGroup('b', 0, 3).rollouts.slice(2));
    const [first] = await store.claim(worker, 1);
    assert.equal(first?.id, 'b:0:2');
    await store.settleGroup({ group: toGroup('b:0'), batch: toBatch('b'), state: 'delivered', members: [] });
    const next = await store.claim(worker, 4);
    assert.deepEqual(
      next.map(({ id }) => id),
      ['b:1:0', 'b:1:1', 'b:2:0', 'b:2:1'],
    );
  });

  test('a delayed rollout is claimed when its time has come, and delays no other', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const claim = await claimOne(bed.store, { id: 'a', worker });
    await bed.store.retry(claim, makeFailure('backend-failed', 1), { delayMs: 500 });
    await submitAll(bed.store, ['b']);
    assert.deepEqual(
      (await bed.store.claim(worker, 9)).map(({ id }) => id),
      ['b'],
    );
    bed.clock.advance(500);
    assert.deepEqual(
      (await bed.store.claim(worker, 9)).map(({ id }) => id),
      ['a'],
    );
  });

  test('the load of a batch is its own work and its fair share of the slots', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    const stage = { active: 0, waiting: 0, slots: 12 };
    const report = { ...makeReport(0), stages: { init: stage, ready: stage, run: stage, evaluate: stage } };
    await store.renew(worker, { leaseMs, report });
    await store.createBatch(makeBatch('b', { weight: 2 }));
    assert.deepEqual(await store.load(toBatch('b')), { queued: 0, active: 0, slots: 12 });
    await submitAs(store, 'small', ['s0']);
    await submitAs(store, 'large', makeIds('l', 100));
    await store.claim(worker, 5);
    await store.beginGroup(makeGroup('b', 0));
    assert.deepEqual(
      await store.load(toBatch('b')),
      { queued: 2, active: 0, slots: 7 },
      'of 11 slots that the small key leaves, two thirds',
    );
    await store.submit([makeRollout('x', { priority: 1 }), makeRollout('y', { priority: 1 })], roomy);
    assert.equal((await store.load(toBatch('b'))).slots, 6, 'higher priorities come first');
    assert.deepEqual(
      (await store.classes()).map(({ kind, name, priority, queued, active }) => [kind, name, priority, queued, active]),
      [
        ['plain', '', 1, 2, 0],
        ['plain', 'small', 0, 0, 1],
        ['plain', 'large', 0, 96, 4],
        ['batch', 'b', 0, 2, 0],
      ],
    );
  });

  test('the counts agree with the rows after every kind of change', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await submitAll(store, makeIds('r', 9));
    const claims = await store.claim(worker, 6);
    const [a, b, c, d] = claims;
    assert.ok(a && b && c && d);
    await moveUpTo(store, a, 'evaluate');
    await moveUpTo(store, b, 'run');
    await store.retry(c, makeFailure('backend-failed', 1), { delayMs: 500 });
    await store.release(d);
    await store.cancel(makeId('r8'), { tombstoneMs: 0 });
    await checkCounts(store);
    bed.clock.advance(leaseMs);
    await store.expire({ leaseMs, maxLosses });
    await checkCounts(store);
    bed.clock.advance(5000);
    await store.retain({ endedMs: 1000, eventsMs: 1000 });
    await checkCounts(store);
    assert.deepEqual(
      (await store.classes()).map(({ queued, active }) => [queued, active]),
      [[8, 0]],
    );
  });
}

async function checkCounts(store: Store): Promise<void> {
  const { rollouts } = await store.list({ limit: 1000 });
  const counted = Object.fromEntries(rolloutStates.map((state) => [state, rollouts.filter((one) => one.state === state).length]));
  assert.deepEqual(await store.counts(), counted);
}
