// The store's promises about rollouts that crash their workers: they wait, they run apart from others, and they are named.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClaimedRollout, Store } from '@millrace/store';
import { claimOne, makeId, type OpenBed, openTimedBed, registerWorker, submitAll, type TimedBed } from './bed/bed.ts';

const rules = { maxLosses: 10, retryDelayMs: 1000 };

/** Loses the worker of each rollout in turn, so that they have this many losses and their delays are over. */
async function loseWorker(bed: TimedBed, ids: readonly string[], times: number): Promise<void> {
  await submitAll(bed.store, ids);
  for (let loss = 0; loss < times; loss += 1) {
    const worker = await registerWorker(bed.store, `lost-${ids[0]}-${loss}`);
    const claims = await bed.store.claim(worker, ids.length);
    assert.equal(claims.length, ids.length);
    await bed.store.dropWorker(worker, rules);
    bed.clock.advance(1000 * 2 ** loss);
  }
}

async function finishAll(store: Store, claims: readonly ClaimedRollout[]): Promise<void> {
  for (const claim of claims) await store.finish(claim, { state: 'cancelled' });
}

export function definePoisonTests(openBed: OpenBed): void {
  test('a rollout waits after each loss, twice as long each time, and at most a minute', async () => {
    await using bed = await openTimedBed(openBed);
    await submitAll(bed.store, ['a']);
    for (const [retryDelayMs, delayMs] of [
      [1000, 1000],
      [1000, 2000],
      [100_000, 60_000],
    ] as const) {
      const lost = await registerWorker(bed.store, `lost-${delayMs}`);
      assert.equal((await bed.store.claim(lost, 1)).length, 1);
      await bed.store.dropWorker(lost, { maxLosses: 10, retryDelayMs });
      bed.clock.advance(delayMs - 1);
      const next = await registerWorker(bed.store, `next-${delayMs}`);
      assert.deepEqual(await bed.store.claim(next, 1), []);
      bed.clock.advance(1);
    }
  });

  test('a rollout that crashes every worker fails alone: it is named, and costs its neighbours few losses', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const neighbours = Array.from({ length: 30 }, (_, index) => `n${index}`);
    await submitAll(store, [...neighbours.slice(0, 3), 'poison', ...neighbours.slice(3)]);
    let crashes = 0;
    for (let round = 0; (await store.counts()).queued > 0; round += 1) {
      assert.ok(round < 100, 'it never ends');
      for (const name of ['x', 'y']) {
        const worker = await registerWorker(store, `${name}${round}`);
        const claims = await store.claim(worker, 6);
        if (claims.some(({ id }) => id === 'poison')) crashes += 1;
        else await finishAll(store, claims);
        await store.dropWorker(worker, rules);
      }
      bed.clock.advance(5000);
    }
    const poison = await store.get(makeId('poison'));
    assert.deepEqual([poison?.state, poison?.failure?.code], ['failed', 'worker-lost']);
    assert.match(poison?.failure?.message ?? '', /it was the only rollout of this worker, and may be the cause/);
    assert.ok(crashes <= 5, `it crashed ${crashes} workers`);
    const records = await Promise.all(neighbours.map((id) => store.get(makeId(id))));
    assert.deepEqual(
      records.filter((record) => record?.state === 'failed'),
      [],
    );
    const most = Math.max(...records.map((record) => record?.losses ?? 0));
    assert.ok(most <= 3, `a neighbour lost ${most} workers`);
  });

  test('a loss names the rollouts that lost workers before', async () => {
    await using bed = await openTimedBed(openBed);
    await loseWorker(bed, ['suspect'], 1);
    const worker = await registerWorker(bed.store, 'w');
    await submitAll(bed.store, ['neighbour']);
    assert.equal((await bed.store.claim(worker, 2)).length, 2);
    await bed.store.dropWorker(worker, rules);
    const [suspect, neighbour] = await Promise.all(['suspect', 'neighbour'].map((id) => bed.store.get(makeId(id))));
    assert.match(neighbour?.failures[0]?.message ?? '', /the likely cause is rollout suspect, which lost 1 before/);
    assert.match(suspect?.failures[1]?.message ?? '', /the likely cause is this rollout, which lost 1 before/);
    const { events } = await bed.store.events(0, { limit: 99, kinds: ['worker-end'] });
    assert.deepEqual(events.at(-1)?.data.suspects, ['suspect']);
  });

  test('one worker drains and then takes only suspects, while the others go on', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    await loseWorker(bed, ['s1', 's2'], 2);
    const [first, second] = [await registerWorker(store, 'first'), await registerWorker(store, 'second')];
    // A worker that holds suspects takes nothing else; its neighbour does.
    assert.deepEqual(
      (await store.claim(first, 9)).map(({ id }) => id),
      ['s1', 's2'],
    );
    await submitAll(store, ['a', 'b']);
    assert.deepEqual(await store.claim(first, 9), []);
    assert.deepEqual(
      (await store.claim(second, 1)).map(({ id }) => id),
      ['a'],
    );
    await store.dropWorker(first, rules);
    bed.clock.advance(4000);
    // The only worker left holds other work: it finishes it first.
    assert.deepEqual(await store.claim(second, 9), []);
    const held = await store.list({ limit: 9, state: 'init' });
    for (const { id, attempt } of held.rollouts) await store.finish({ id, attempt, worker: second }, { state: 'cancelled' });
    const [alone] = await store.claim(second, 9);
    assert.equal(alone?.id, 's1', 'after three losses it runs alone');
    assert.deepEqual(await store.claim(second, 9), []);
    await finishAll(store, alone ? [alone] : []);
    await finishAll(store, await store.claim(second, 9));
    assert.deepEqual(
      (await store.claim(second, 9)).map(({ id }) => id),
      ['b'],
      'then it takes other work again',
    );
  });

  test('a hand-back or a retry makes no suspect', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const claim = await claimOne(bed.store, { id: 'a', worker });
    await bed.store.release(claim);
    await submitAll(bed.store, ['b']);
    assert.equal((await bed.store.claim(worker, 2)).length, 2);
  });
}
