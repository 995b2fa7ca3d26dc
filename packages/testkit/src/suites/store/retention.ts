// The store's promises about how long finished work is kept, by its outcome, and that a task is read as it was given although siblings
// share it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dropText } from '@millrace/protocol';
import type { Settlement, Store } from '@millrace/store';
import { makeId, makeResult, makeRollout, makeTrajectory, type OpenBed, openTimedBed, registerWorker, submitAll } from './bed/bed.ts';
import { makeBatch, makeGroup, toBatch, toGroup } from './bed/bed-batches.ts';

const b = toBatch('b');
const day = 86_400_000;

let workers = 0;

/** Ends everything that is queued, except those with these ids. */
async function finishAll(store: Store, exceptIds: readonly string[] = []): Promise<void> {
  const worker = await registerWorker(store, `retained-${workers++}`);
  for (const claim of await store.claim(worker, 1000)) {
    if (exceptIds.includes(claim.id)) continue;
    for (const to of ['ready', 'run', 'evaluate'] as const) await store.move(claim, to);
    await store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, claim.attempt) });
  }
}

const outcomes = ['uniform', 'failed', 'stale', 'delivered'] as const;

/** A batch that ended with two delivered groups and one of each other outcome, and a plain rollout. */
async function makeOutcomes(store: Store, running: readonly string[] = []): Promise<void> {
  await store.createBatch(makeBatch('b', { target: 2, count: 6, series: 's', surplus: 'keep' }));
  for (let begun = 0; begun < 6; begun += 1) await store.beginGroup(makeGroup('b', begun));
  await submitAll(store, ['plain']);
  await finishAll(store, running);
  for (const [begun, state] of [...outcomes, 'delivered' as const].entries()) {
    const group = toGroup(`b:${begun}`);
    const members: Settlement['members'] = state === 'delivered' ? [makeId(`${group}:0`), makeId(`${group}:1`)] : [];
    assert.equal(await store.settleGroup({ group, batch: b, state, members }), true);
  }
}

const groupNames = { uniform: 0, failed: 1, stale: 2, delivered: 3, surplus: 5 };

async function readKept(store: Store): Promise<string[]> {
  const { rollouts } = await store.list({ limit: 100 });
  const has = (id: string) => rollouts.some((rollout) => rollout.id === id);
  const groups = Object.entries(groupNames).filter(([, begun]) => has(`b:${begun}:0`) && has(`b:${begun}:1`));
  return [...groups.map(([name]) => name), ...(has('plain') ? ['plain'] : [])];
}

export function defineRetentionTests(openBed: OpenBed): void {
  test('each outcome is kept for its own time after the end of the batch, and the counts of the batch stay', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    await makeOutcomes(store);
    const before = await store.batch(b);
    const ages = { endedMs: 10 * day, eventsMs: day, outcomes: { uniform: day, surplus: 2 * day, plain: 3 * day, delivered: 4 * day } };
    const all = ['uniform', 'failed', 'stale', 'delivered', 'surplus', 'plain'];
    assert.equal(await store.retain(ages), 0);
    assert.deepEqual(await readKept(store), all);
    const kept: string[][] = [];
    for (let passed = 1; passed <= 4; passed += 1) {
      clock.advance(day + 1);
      await store.retain(ages);
      kept.push(await readKept(store));
    }
    assert.deepEqual(kept, [
      ['failed', 'stale', 'delivered', 'surplus', 'plain'],
      ['failed', 'delivered', 'plain'],
      ['failed', 'delivered'],
      ['failed'],
    ]);
    assert.deepEqual(await store.batch(b), before);
    await assert.rejects(store.deliveredGroups(b, { after: 0, limit: 5 }), { code: 'gone', message: /up to 2 are no longer kept/ });
    assert.deepEqual(await store.deliveredGroups(b, { after: 2, limit: 5 }), []);
    clock.advance(10 * day);
    assert.equal(await store.retain(ages), 2);
    assert.equal(await store.batch(b), undefined);
    assert.deepEqual((await store.list({ limit: 9 })).rollouts, []);
  });

  test('delivered groups that a consumer has not acknowledged are not deleted for their age', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    await makeOutcomes(store);
    await store.ack(b, 'trainer', 1);
    const ages = { endedMs: 100 * day, eventsMs: day, outcomes: { delivered: day } };
    clock.advance(2 * day);
    assert.equal(await store.retain(ages), 0);
    await store.ack(b, 'trainer', 2);
    assert.equal(await store.retain(ages), 4);
    assert.equal((await store.batch(b))?.groups.delivered, 2);
  });

  test('a group of which a rollout still runs is not deleted', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    await makeOutcomes(store, ['b:5:1']);
    const ages = { endedMs: 100 * day, eventsMs: day, outcomes: { surplus: day } };
    clock.advance(2 * day);
    await store.retain(ages);
    assert.ok((await readKept(store)).includes('surplus'));
    assert.ok(!(await readKept(store)).includes('stale'));
  });

  test('retention reports how long each of its steps held the write lock', async () => {
    await using bed = await openTimedBed(openBed);
    await makeOutcomes(bed.store);
    bed.clock.advance(2 * day);
    const locks: number[] = [];
    await bed.store.retain({ endedMs: day, eventsMs: day, onStep: (lockMs) => locks.push(lockMs) });
    assert.ok(locks.length >= 2);
    for (const ms of locks) assert.ok(ms > 0);
  });

  test('from its age on, a trajectory has no text and no messages, and every number is the same', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    await submitAll(store, ['old']);
    await finishAll(store);
    clock.advance(2 * day);
    await submitAll(store, ['young']);
    await finishAll(store);
    const ages = { endedMs: 100 * day, eventsMs: 100 * day, textMs: day };
    clock.advance(1);
    assert.equal(await store.retain(ages), 0);
    assert.deepEqual(await store.trajectory(makeId('old')), dropText(makeTrajectory('old', 1)));
    assert.deepEqual(await store.trajectory(makeId('young')), makeTrajectory('young', 1));
    const steps: number[] = [];
    await store.retain({ ...ages, onStep: (lockMs) => steps.push(lockMs) });
    assert.deepEqual(await store.trajectory(makeId('old')), dropText(makeTrajectory('old', 1)));
    assert.equal(steps.length, 2, 'one look at rollouts and one at steps of trainers: nothing is rewritten twice');
  });

  test('siblings have the task that they were given, whether or not it is the task of their group', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    await store.createBatch(makeBatch('b'));
    const group = makeGroup('b', 0);
    const [first, second] = group.rollouts;
    assert.ok(first && second);
    const same = { ...first, submission: { ...first.submission, task: { ...group.task } } };
    const other = { ...second, submission: { ...second.submission, task: { question: 'another' } } };
    await store.beginGroup({ ...group, rollouts: [same, other] });
    const third = { ...makeRollout('b:0:2', { group: group.id, task: { ...group.task } }) };
    await store.replaceSiblings(group.id, [third]);
    const date = new Date(bed.clock.now()).toISOString();
    const expected = [same, other, third].map(({ submission }) => ({ ...submission, date }));
    const read = await Promise.all([same, other, third].map(({ id }) => store.get(id)));
    assert.deepEqual(
      read.map((record) => record?.submission),
      expected,
    );
    const worker = await registerWorker(store, 'w');
    const claims = await store.claim(worker, 9);
    assert.deepEqual(
      claims.toSorted((one, two) => one.id.localeCompare(two.id)).map(({ submission }) => submission),
      expected,
    );
    assert.deepEqual(
      (await store.list({ batch: b, limit: 9 })).rollouts.map(({ submission }) => submission),
      expected,
    );
  });
}
