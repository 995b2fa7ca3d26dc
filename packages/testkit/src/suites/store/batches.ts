// The store's promises about batches: each decision takes effect once, even if it is repeated or late.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BatchId, definedOf, isTerminal, type RolloutId } from '@millrace/protocol';
import type { Settlement, Store } from '@millrace/store';
import { makeId, makeReport, makeResult, makeTrajectory, type OpenBed, openTimedBed, registerWorker, roomy, submitAll } from './bed/bed.ts';
import { makeBatch, makeGroup, toBatch, toGroup } from './bed/bed-batches.ts';

const b = toBatch('b');

let workers = 0;

/** Claims all queued rollouts and ends each with a reward. */
export async function finishAll(store: Store, rewardOf: (id: RolloutId) => number = (id) => Number(id.endsWith('0'))): Promise<void> {
  const worker = await registerWorker(store, `finisher-${workers++}`);
  for (const claim of await store.claim(worker, 1000)) {
    for (const to of ['ready', 'run', 'evaluate'] as const) await store.move(claim, to);
    await store.finish(claim, {
      state: 'done',
      result: makeResult(rewardOf(claim.id)),
      trajectory: makeTrajectory(claim.id, claim.attempt),
    });
  }
}

export function deliver(batch: BatchId, begun: number): Settlement {
  const group = toGroup(`${batch}:${begun}`);
  return { group, batch, state: 'delivered', members: [makeId(`${group}:0`), makeId(`${group}:1`)] };
}

export function defineBatchTests(openBed: OpenBed): void {
  test('a batch is created once, is visible in another process, and a different request with its id is a conflict', async () => {
    await using bed = await openTimedBed(openBed);
    assert.equal(await bed.store.createBatch(makeBatch('b')), 'created');
    assert.equal(await bed.store.createBatch(makeBatch('b')), 'known');
    assert.equal(await bed.store.createBatch(makeBatch('b', { target: 3 })), 'conflict');
    const record = await (await bed.another()).batch(b);
    assert.deepEqual([record?.state, record?.tasks, record?.plan.target], ['open', { given: 4, begun: 0, closed: true }, 2]);
    assert.equal(await bed.store.batch(toBatch('none')), undefined);
  });

  test('batches are listed in order, page by page, filtered by state and series', async () => {
    await using bed = await openTimedBed(openBed);
    for (const [index, id] of ['z', 'y', 'x'].entries()) await bed.store.createBatch(makeBatch(id, index === 1 ? { series: 's' } : {}));
    await bed.store.endBatch(toBatch('x'), 'cancelled');
    const first = await bed.store.batches({ limit: 2 });
    assert.deepEqual(
      first.batches.map(({ id }) => id),
      ['z', 'y'],
    );
    const second = await bed.store.batches(definedOf({ limit: 2, after: first.next }));
    assert.deepEqual([second.batches.map(({ id }) => id), second.next], [['x'], undefined]);
    assert.deepEqual(
      (await bed.store.batches({ limit: 9, state: 'cancelled' })).batches.map(({ id }) => id),
      ['x'],
    );
    assert.deepEqual(
      (await bed.store.batches({ limit: 9, series: makeBatch('q', { series: 's' }).plan.series ?? assert.fail() })).batches.map(
        ({ id }) => id,
      ),
      ['y'],
    );
  });

  test('tasks are appended in order until the batch is closed', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { count: 1, closed: false }));
    const last = { tasks: [{ question: 'x' }], closed: true, key: 'k' };
    assert.equal(await bed.store.appendTasks(b, last), 'appended');
    const { tasks } = (await bed.store.batch(b)) ?? assert.fail('no batch');
    assert.equal(await bed.store.appendTasks(b, last), 'appended');
    assert.deepEqual((await bed.store.batch(b))?.tasks, tasks, 'the same key again changes nothing');
    assert.equal(await bed.store.appendTasks(b, { tasks: [{ question: 'y' }], closed: false }), 'ended');
    assert.equal(await bed.store.appendTasks(toBatch('none'), { tasks: [], closed: false }), 'unknown');
    assert.deepEqual(
      (await bed.store.queuedTasks(b, 9)).map(({ taskIndex, task }) => [taskIndex, task.question]),
      [
        [0, '0'],
        [1, 'x'],
      ],
    );
  });

  test('a group starts once, with its rollouts, and takes its task, even if two processes start it', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { count: 2 }));
    const other = await bed.another();
    const begun = await Promise.all([bed.store.beginGroup(makeGroup('b', 0)), other.beginGroup(makeGroup('b', 0))]);
    assert.deepEqual(begun.toSorted(), [false, true]);
    assert.equal((await bed.store.list({ limit: 9 })).rollouts.length, 2);
    assert.equal(await bed.store.beginGroup(makeGroup('b', 1)), true);
    assert.equal(await bed.store.beginGroup(makeGroup('b', 2)), false, 'there was no third task');
    assert.deepEqual(
      (await bed.store.openGroups(b)).map(({ id, taskIndex, siblings }) => [id, taskIndex, siblings.length]),
      [
        ['b:0', 0, 2],
        ['b:1', 1, 2],
      ],
    );
    assert.deepEqual(await bed.store.groupTask(toGroup('b:1')), { question: '1', answer: '2' });
  });

  test('a cursor moves with the group that used its task, and only from its current position', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { count: 0 }));
    const from = { kind: 'cursor', name: 'c', at: 0, to: 3 } as const;
    assert.equal(await bed.store.beginGroup({ ...makeGroup('b', 0), from }), true);
    assert.equal(await bed.store.cursor('c'), 3);
    assert.equal(await bed.store.beginGroup({ ...makeGroup('b', 1), from }), false);
    assert.equal(await bed.store.beginGroup({ ...makeGroup('b', 1), from: { ...from, at: 3, to: 4 } }), true);
    assert.deepEqual(
      (await bed.store.openGroups(b)).map(({ taskIndex }) => taskIndex),
      [2, 3],
    );
  });

  test('a group fails if a caller already used its rollout ids, and the batch continues', async () => {
    await using bed = await openTimedBed(openBed);
    await submitAll(bed.store, ['b:0:1']);
    await bed.store.createBatch(makeBatch('b'));
    assert.equal(await bed.store.beginGroup(makeGroup('b', 0)), true);
    assert.equal(await bed.store.beginGroup(makeGroup('b', 1)), true);
    const { failed, open } = (await bed.store.batch(b))?.groups ?? assert.fail();
    assert.deepEqual([failed, open], [1, 1]);
    assert.equal((await bed.store.list({ limit: 9 })).rollouts.length, 3);
    await submitAll(bed.store, ['b:1:2']);
    assert.equal(await bed.store.replaceSiblings(toGroup('b:1'), makeGroup('b', 1, 3).rollouts.slice(2)), true);
    assert.equal((await bed.store.batch(b))?.groups.failed, 2);
  });

  test('delivered groups get consecutive places once, and meeting the target ends the batch and its surplus', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { target: 2 }));
    for (const begun of [0, 1, 2]) await bed.store.beginGroup(makeGroup('b', begun));
    const worker = await registerWorker(bed.store, 'w');
    const claims = await bed.store.claim(worker, 5); // b:2:0 runs, b:2:1 waits
    for (const claim of claims.slice(0, 4)) {
      for (const to of ['ready', 'run', 'evaluate'] as const) await bed.store.move(claim, to);
      await bed.store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, 1) });
    }
    assert.equal(await bed.store.settleGroup(deliver(b, 1)), true);
    assert.equal(await bed.store.settleGroup(deliver(b, 1)), false);
    assert.equal(await bed.store.settleGroup(deliver(b, 0)), true);
    assert.equal(await bed.store.settleGroup(deliver(b, 2)), false);
    const record = await bed.store.batch(b);
    assert.deepEqual([record?.state, record?.groups.delivered, record?.groups.surplus, record?.groups.open], ['met', 2, 1, 0]);
    assert.equal((await bed.store.get(makeId('b:2:1')))?.state, 'cancelled');
    assert.deepEqual((await bed.store.renew(worker, { leaseMs: 1000, report: makeReport(0) })).cancelled, ['b:2:0']);
    const groups = await bed.store.deliveredGroups(b, { after: 0, limit: 9 });
    assert.deepEqual(
      groups.map(({ seq, id, rollouts }) => [seq, id, rollouts.map((one) => one.id)]),
      [
        [1, 'b:1', ['b:1:0', 'b:1:1']],
        [2, 'b:0', ['b:0:0', 'b:0:1']],
      ],
    );
    assert.deepEqual(
      (await bed.store.deliveredGroups(b, { after: 1, limit: 9 })).map(({ seq }) => seq),
      [2],
    );
    assert.equal(await bed.store.beginGroup(makeGroup('b', 3)), false);
  });

  test('the task of a stale group returns to the queue with the same index', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { count: 2 }));
    await bed.store.beginGroup(makeGroup('b', 0));
    assert.equal(await bed.store.settleGroup({ group: toGroup('b:0'), batch: b, state: 'stale', members: [] }), true);
    assert.deepEqual(
      (await bed.store.queuedTasks(b, 9)).map(({ taskIndex }) => taskIndex),
      [1, 0],
    );
    assert.ok((await bed.store.list({ limit: 9 })).rollouts.every(({ state }) => isTerminal(state)));
  });

  test('siblings are replaced once, and only in an open group', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b'));
    await bed.store.beginGroup(makeGroup('b', 0));
    const more = makeGroup('b', 0, 3).rollouts.slice(2);
    assert.equal(await bed.store.replaceSiblings(toGroup('b:0'), more), true);
    assert.equal(await bed.store.replaceSiblings(toGroup('b:0'), more), false);
    const [group] = await bed.store.openGroups(b);
    assert.deepEqual([group?.siblings.length, group?.replacements], [3, 1]);
    await bed.store.endBatch(b, 'cancelled');
    assert.equal(await bed.store.replaceSiblings(toGroup('b:0'), makeGroup('b', 0, 4).rollouts.slice(3)), false);
  });

  test('surplus is carried over once, to a later batch with the same series and recipe, and its waste stays with the batch that sampled it', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const series = { series: 's', target: 1 };
    await store.createBatch(makeBatch('a', series));
    for (const begun of [0, 1]) await store.beginGroup(makeGroup('a', begun));
    await finishAll(store);
    await store.settleGroup(deliver(toBatch('a'), 0));
    await store.createBatch(makeBatch('hot', { ...series, sampling: { temperature: 2 } }));
    assert.deepEqual(await store.surplusGroups(toBatch('hot'), 9), []);
    await store.createBatch(makeBatch('b', series));
    assert.deepEqual((await store.batch(toBatch('a')))?.wasted.surplus.rollouts, 2);
    assert.deepEqual(
      (await store.surplusGroups(b, 9)).map(({ id, task }) => [id, task.question]),
      [['a:1', '1']],
    );
    assert.equal(await store.takeGroup(b, toGroup('a:1'), []), true);
    assert.equal(await store.takeGroup(b, toGroup('a:1'), []), false);
    await store.settleGroup({ group: toGroup('a:1'), batch: b, state: 'uniform', members: [] });
    const [first, second] = [await store.batch(toBatch('a')), await store.batch(b)];
    assert.deepEqual([first?.wasted.surplus.rollouts, first?.wasted.uniform.rollouts, first?.groups.surplus], [0, 2, 0]);
    assert.deepEqual([second?.wasted.uniform.rollouts, second?.carried, second?.groups.uniform], [0, 1, 1]);
  });

  test('the mean reward covers the judged groups, and a list shows the rollouts of one batch', async () => {
    await using bed = await openTimedBed(openBed);
    await submitAll(bed.store, ['other']);
    await bed.store.createBatch(makeBatch('b', { target: 3 }));
    for (const begun of [0, 1, 2]) await bed.store.beginGroup(makeGroup('b', begun));
    await finishAll(bed.store, (id) => (id.startsWith('b:1') ? 1 : Number(id.endsWith('0'))));
    assert.equal((await bed.store.batch(b))?.meanReward, undefined);
    await bed.store.settleGroup(deliver(b, 0));
    assert.equal((await bed.store.batch(b))?.meanReward, 0.5);
    await bed.store.settleGroup({ group: toGroup('b:1'), batch: b, state: 'uniform', members: [] });
    const [open] = await bed.store.openBatches();
    assert.deepEqual([open?.meanReward, open?.open, open?.delivered, open?.uniform], [0.75, 1, 1, 1]);
    const { rollouts, next } = await bed.store.list({ limit: 4, batch: b, order: 'newest' });
    assert.deepEqual(
      rollouts.map(({ id }) => id),
      ['b:2:1', 'b:2:0', 'b:1:1', 'b:1:0'],
    );
    const rest = await bed.store.list({ limit: 4, batch: b, order: 'newest', after: next ?? assert.fail('no next page') });
    assert.deepEqual(
      rest.rollouts.map(({ id }) => id),
      ['b:0:1', 'b:0:0'],
    );
    assert.deepEqual((await bed.store.list({ limit: 4, batch: toBatch('none') })).rollouts, []);
  });

  test('the position of a consumer never decreases, and never exceeds what was delivered', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { target: 3 }));
    for (const begun of [0, 1]) await bed.store.beginGroup(makeGroup('b', begun));
    await finishAll(bed.store);
    for (const begun of [0, 1]) await bed.store.settleGroup(deliver(b, begun));
    assert.equal(await bed.store.ack(b, 'c', 1), 1);
    assert.equal(await bed.store.ack(b, 'c', 0), 1);
    assert.equal(await bed.store.ack(b, 'c', 99), 2);
    assert.equal(await bed.store.acked(b, 'c'), 2);
    assert.equal(await bed.store.acked(b, 'other'), 0);
    assert.equal(await bed.store.ack(toBatch('none'), 'c', 1), undefined);
  });

  test('the outbox returns the groups of a batch one at a time, and again after a failure', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.createBatch(makeBatch('b', { target: 3, webhook: { url: 'http://h/', secret: 'x' } }));
    for (const begun of [0, 1]) await bed.store.beginGroup(makeGroup('b', begun));
    await finishAll(bed.store);
    assert.deepEqual((await bed.store.dueWebhooks()).due, []);
    for (const begun of [0, 1]) await bed.store.settleGroup(deliver(b, begun));
    const first = { batch: 'b', url: 'http://h/', secret: 'x', seq: 1, attempts: 0 };
    assert.deepEqual(await bed.store.dueWebhooks(), { due: [first] });
    await bed.store.noteWebhook({ batch: b, seq: 1, delayMs: 500 });
    assert.deepEqual(await bed.store.dueWebhooks(), { due: [], nextAtMs: bed.clock.now() + 500 });
    bed.clock.advance(500);
    assert.deepEqual((await bed.store.dueWebhooks()).due, [{ ...first, attempts: 1 }]);
    await bed.store.noteWebhook({ batch: b, seq: 1 });
    await bed.store.noteWebhook({ batch: b, seq: 1 }); // recorded twice, moved once
    assert.deepEqual((await bed.store.dueWebhooks()).due, [{ ...first, seq: 2 }]);
  });

  test('retention keeps the rollouts of a batch until it is old and acknowledged', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    await store.createBatch(makeBatch('b', { target: 1 }));
    await store.beginGroup(makeGroup('b', 0));
    await finishAll(store);
    await store.settleGroup(deliver(b, 0));
    await store.ack(b, 'c', 0);
    const retain = () => store.retain({ endedMs: 1000, eventsMs: 1000 });
    clock.advance(1500);
    assert.equal(await retain(), 0);
    await store.ack(b, 'c', 1);
    assert.equal(await retain(), 2);
    assert.equal(await store.batch(b), undefined);
    assert.deepEqual(await store.submit([], roomy), { kind: 'accepted', rollouts: [] });
  });

  test('the load counts rollouts that wait for or hold a run slot, and the slots of live workers', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await submitAll(bed.store, ['x', 'y']);
    await bed.store.renew(worker, { leaseMs: 1000, report: makeReport(0) });
    await bed.store.claim(worker, 1);
    assert.deepEqual(await bed.store.load(), { queued: 1, active: 1, slots: 3 });
    bed.clock.advance(2000);
    assert.equal((await bed.store.load()).slots, 0);
  });
}
