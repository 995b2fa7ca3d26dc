// The store's promises about what callers ask of an open batch, and about tasks that are sampled again and again.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MoreTasks } from '@millrace/store';
import { type OpenBed, openTimedBed } from './bed/bed.ts';
import { makeBatch, makeGroup, toBatch, toGroup } from './bed/bed-batches.ts';

const b = toBatch('b');

export function defineBatchRequestTests(openBed: OpenBed): void {
  test('the same key with a different request changes nothing, and the reply says what differs', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { count: 1, closed: false }));
    const first = { tasks: [{ question: 'x' }, { question: 'y' }], closed: false, key: 'k' };
    assert.equal(await bed.store.appendTasks(b, first), 'appended');
    const differing: [Partial<MoreTasks>, RegExp][] = [
      [{ tasks: [{ question: 'x' }] }, /^tasks: it has 1 tasks, and had 2/],
      [{ tasks: [{ question: 'x' }, { question: 'z' }] }, /^tasks\[1\]: it is another task/],
      [{ closed: true }, /^closed: it is true, and was false/],
    ];
    for (const [changes, differs] of differing) {
      const outcome = await bed.store.appendTasks(b, { ...first, ...changes });
      assert.match(typeof outcome === 'object' ? outcome.differs : outcome, differs);
    }
    assert.equal(await bed.store.appendTasks(b, first), 'appended');
    assert.deepEqual((await bed.store.batch(b))?.tasks, { given: 3, begun: 0, closed: false });
  });

  test('a paused batch is resumed by command, and an ended one is not', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { count: 8, target: 8 }));
    for (const begun of [0, 1, 2]) {
      await bed.store.beginGroup(makeGroup('b', begun));
      const failed = { group: toGroup(`b:${begun}`), batch: b, state: 'failed', members: [], blameless: 'no sandbox' } as const;
      await bed.store.settleGroup(failed);
    }
    assert.equal((await bed.store.batch(b))?.paused?.reason, 'no sandbox');
    assert.equal(await bed.store.resumeBatch(b), 'resumed');
    assert.equal((await bed.store.batch(b))?.paused, undefined);
    assert.equal(await bed.store.resumeBatch(b), 'resumed');
    assert.equal((await bed.store.events(0, { limit: 99, kinds: ['batch-resume'] })).events.length, 1);
    await bed.store.endBatch(b, 'cancelled');
    assert.equal(await bed.store.resumeBatch(b), 'ended');
    assert.equal(await bed.store.resumeBatch(toBatch('none')), 'unknown');
  });

  test('a task whose groups are stale again and again is dropped', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { count: 1 }));
    let begun = 0;
    while (begun < 20 && (await bed.store.beginGroup(makeGroup('b', begun)))) {
      await bed.store.settleGroup({ group: toGroup(`b:${begun}`), batch: b, state: 'stale', members: [] });
      begun += 1;
    }
    assert.equal(begun, 9, 'the first time and eight repeats');
  });

  test('a batch is not ended as short by a server that has not seen its newest group or task', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    await store.createBatch(makeBatch('b', { target: 2, count: 2 }));
    const [seen] = await store.openBatches();
    assert.equal(await store.beginGroup(makeGroup('b', 0)), true);
    assert.equal(await store.endBatch(toBatch('b'), 'short', seen), false);
    const [open] = await store.openBatches();
    assert.equal(await store.endBatch(toBatch('b'), 'short', open), false, 'a group is open');
    await store.settleGroup({ group: toGroup('b:0'), batch: toBatch('b'), state: 'failed', members: [] });
    assert.equal(await store.endBatch(toBatch('b'), 'short', open), true);
  });
}
