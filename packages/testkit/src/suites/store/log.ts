// The store's promises about its event log, its hints, restarts and retention.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventKind } from '@millrace/protocol';
import type { Store } from '@millrace/store';
import {
  claimOne,
  leaseMs,
  makeFailure,
  makeId,
  makeResult,
  makeRollout,
  makeTrajectory,
  maxLosses,
  moveUpTo,
  type OpenBed,
  openTimedBed,
  registerWorker,
  roomy,
  submitAll,
} from './bed/bed.ts';

export function defineLogTests(openBed: OpenBed): void {
  test('every change of a rollout is in the log, in order', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await submitAll(bed.store, ['a'], { group: 'g' });
    const [first] = await bed.store.claim(worker, 1);
    assert.ok(first);
    await bed.store.retry(first, makeFailure('backend-failed', 1), { delayMs: 0 });
    const [second] = await bed.store.claim(worker, 1);
    assert.ok(second);
    await moveUpTo(bed.store, second, 'evaluate');
    await bed.store.finish(second, { state: 'done', result: makeResult(1), trajectory: makeTrajectory('a', 2) });
    const { events } = await bed.store.events(0, { limit: 99 });
    const changes = events.map(({ kind, data }) => [kind, data.reason ?? data.to ?? data.state, data.attempt]);
    assert.deepEqual(changes, [
      ['worker-start', undefined, undefined],
      ['rollout-queue', 'submit', 0],
      ['rollout-move', 'init', 1],
      ['rollout-queue', 'retry', 1],
      ['rollout-move', 'init', 2],
      ['rollout-move', 'ready', 2],
      ['rollout-move', 'run', 2],
      ['rollout-move', 'evaluate', 2],
      ['rollout-end', 'done', 2],
    ]);
    assert.ok(events.slice(1).every((event) => event.rollout_id === 'a' && event.group === 'g'));
    const { stop_reason, turns, tokens, timings } = makeResult(1);
    assert.deepEqual(events.at(-1), {
      id: events.length,
      at: new Date(bed.clock.now()).toISOString(),
      kind: 'rollout-end',
      rollout_id: 'a',
      group: 'g',
      worker_id: 'w',
      data: { state: 'done', reward: 1, stop_reason, code: null, blame: null, scenario: 'math', attempt: 2, turns, tokens, timings },
    });
  });

  test('the event of a failure has its code and blame', async () => {
    await using bed = await openTimedBed(openBed);
    const claim = await claimOne(bed.store, { id: 'a', worker: await registerWorker(bed.store, 'w') });
    await bed.store.finish(claim, { state: 'failed', failure: makeFailure('init-failed', 1) });
    const { events } = await bed.store.events(0, { limit: 9, kinds: ['rollout-end'] });
    const ends = events.map(({ data }) => [data.state, data.reward, data.code, data.blame]);
    assert.deepEqual(ends, [['failed', null, 'init-failed', 'task']]);
  });

  test('a reader resumes where it stopped, and its position also advances over filtered kinds', async () => {
    await using bed = await openTimedBed(openBed);
    assert.deepEqual(await bed.store.events(0, { limit: 5 }), { events: [], last: 0 });
    assert.equal(await bed.store.lastEventId(), 0);
    const kinds: EventKind[] = ['turn-end', 'backend-join', 'turn-end', 'turn-end', 'backend-join'];
    await bed.store.appendEvents(kinds.map((kind, index) => ({ kind, rolloutId: makeId('a'), data: { index } })));
    const first = await bed.store.events(0, { limit: 2, kinds: ['turn-end'] });
    assert.deepEqual([first.events.map(({ id }) => id), first.last], [[1, 3], 3]);
    const second = await bed.store.events(first.last, { limit: 2, kinds: ['turn-end'] });
    assert.deepEqual([second.events.map(({ id }) => id), second.last], [[4], 5]);
    assert.deepEqual(await bed.store.events(5, { limit: 2 }), { events: [], last: 5 });
    assert.equal(await bed.store.lastEventId(), 5);
  });

  test('a reader that follows two writers sees every event once, in the order of ids', async () => {
    await using bed = await openTimedBed(openBed);
    const writers = [bed.store, await bed.another()];
    const writing = Promise.all(
      Array.from({ length: 100 }, (_, index) => writers[index % 2]?.appendEvents([{ kind: 'turn-end', data: { index } }])),
    );
    const seen: number[] = [];
    for (let after = 0; seen.length < 100; ) {
      const { events, last } = await bed.store.events(after, { limit: 7 });
      seen.push(...events.map(({ id }) => id));
      after = last;
    }
    await writing;
    assert.deepEqual(
      seen,
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
  });

  test('a hint reaches other handles soon after a change, and stops after unsubscribing', async () => {
    await using bed = await openTimedBed(openBed);
    const other = await bed.another();
    let late = 0;
    const stop = other.onHint(() => late++);
    stop();
    for (const id of ['a', 'b', 'c']) await hintAfter(other, () => submitAll(bed.store, [id]));
    await hintAfter(bed.store, () => submitAll(bed.store, ['d']));
    assert.equal(late, 0);
  });

  test('everything acknowledged survives a restart', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const claim = await claimOne(bed.store, { id: 'a', worker });
    await moveUpTo(bed.store, claim, 'run');
    const before = [await bed.store.get(claim.id), await bed.store.workers(), await bed.store.events(0, { limit: 99 })];
    await bed.store[Symbol.asyncDispose]();
    const reopened = await bed.another();
    assert.deepEqual([await reopened.get(claim.id), await reopened.workers(), await reopened.events(0, { limit: 99 })], before);
    assert.equal(await reopened.move(claim, 'evaluate'), true);
  });

  test('a closed store rejects calls, and closing is idempotent', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store[Symbol.asyncDispose]();
    await bed.store[Symbol.asyncDispose]();
    await assert.rejects(bed.store.get(makeId('a')), { code: 'not-running' });
    await assert.rejects(bed.store.submit([makeRollout('a')], roomy), { code: 'not-running' });
  });

  test('retention deletes only old finished rollouts, events and workers', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const old = await claimOne(bed.store, { id: 'old', worker });
    await bed.store.finish(old, { state: 'cancelled', result: makeResult(null), trajectory: makeTrajectory('old', 1) });
    await submitAll(bed.store, ['live']);
    bed.clock.advance(leaseMs);
    await bed.store.expire({ leaseMs, maxLosses });
    const lastOld = await bed.store.lastEventId();
    bed.clock.advance(1_000);
    await registerWorker(bed.store, 'w2');
    await submitAll(bed.store, ['young']);
    await bed.store.cancel(makeId('young'), { tombstoneMs: 0 });
    assert.equal(await bed.store.retain({ endedMs: 500, eventsMs: 500 }), 1);
    assert.deepEqual(
      (await bed.store.list({ limit: 9 })).rollouts.map(({ id }) => id),
      ['live', 'young'],
    );
    assert.equal(await bed.store.trajectory(old.id), undefined);
    const { events } = await bed.store.events(0, { limit: 99 });
    assert.equal(events[0]?.id, lastOld + 1);
    assert.deepEqual(
      (await bed.store.workers()).map(({ id }) => id),
      ['w2'],
    );
    assert.deepEqual(await bed.store.submit([makeRollout('old')], roomy), {
      kind: 'accepted',
      rollouts: [{ id: 'old', state: 'queued', created: true }],
    });
  });

  test('retention deletes nothing after the clock steps ahead, until the time to keep has passed', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const claim = await claimOne(bed.store, { id: 'a', worker });
    await bed.store.finish(claim, { state: 'cancelled' });
    bed.clock.step(10 * 365 * 24 * 3_600_000);
    const ages = { endedMs: 5000, eventsMs: 5000 };
    const reopened = await bed.another();
    for (const store of [bed.store, reopened]) assert.equal(await store.retain(ages), 0);
    bed.clock.advance(4999);
    for (const store of [bed.store, reopened]) assert.equal(await store.retain(ages), 0);
    assert.equal((await bed.store.get(claim.id))?.state, 'cancelled');
    assert.notEqual((await bed.store.events(0, { limit: 1 })).events.length, 0);
    bed.clock.advance(1);
    assert.equal(await bed.store.retain(ages), 1);
  });

  test('the oldest event that is kept is known, also when none is', async () => {
    await using bed = await openTimedBed(openBed);
    assert.equal(await bed.store.oldestEventId(), 1);
    await submitAll(bed.store, ['a', 'b']);
    assert.equal(await bed.store.oldestEventId(), 1);
    bed.clock.advance(10);
    await submitAll(bed.store, ['c']);
    await bed.store.retain({ endedMs: 5, eventsMs: 5 });
    assert.equal(await bed.store.oldestEventId(), 3);
    bed.clock.advance(10);
    await bed.store.retain({ endedMs: 5, eventsMs: 5 });
    assert.equal(await bed.store.oldestEventId(), 4);
  });

  test('event ids keep increasing after everything was deleted', async () => {
    await using bed = await openTimedBed(openBed);
    await submitAll(bed.store, ['a']);
    bed.clock.advance(10);
    await bed.store.retain({ endedMs: 1, eventsMs: 1 });
    assert.deepEqual(await bed.store.events(0, { limit: 9 }), { events: [], last: 1 });
    await submitAll(bed.store, ['b']);
    assert.equal(await bed.store.lastEventId(), 2);
  });
}

async function hintAfter(store: Store, change: () => Promise<void>): Promise<void> {
  const hinted = Promise.withResolvers<void>();
  const stop = store.onHint(() => hinted.resolve());
  await change();
  await hinted.promise;
  stop();
}
