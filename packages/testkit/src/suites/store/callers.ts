// The store's promises to callers: submitting, cancelling, reading and listing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { definedOf, groupId } from '@millrace/protocol';
import {
  claimOne,
  leaseMs,
  makeId,
  makeReport,
  makeRollout,
  moveUpTo,
  type OpenBed,
  openTimedBed,
  registerWorker,
  roomy,
  submitAll,
} from './bed/bed.ts';

const tombstoneMs = 60_000;

export function defineCallerTests(openBed: OpenBed): void {
  test('siblings have one date: that of the first, or the one that a caller set, however much later they come', async () => {
    await using bed = await openTimedBed(openBed);
    const dateOf = async (id: string) => (await bed.store.get(makeId(id)))?.submission.date;
    const start = new Date(bed.clock.now()).toISOString();
    await bed.store.submit([makeRollout('a', { group: 'g' }), makeRollout('b', { group: 'g' }), makeRollout('alone')], roomy);
    bed.clock.advance(86_400_000);
    const many = Array.from({ length: 40 }, (_, i) => makeRollout(`n${i}`, { group: `new-${i}` }));
    const later = new Date(bed.clock.now()).toISOString();
    await bed.store.submit([makeRollout('c', { group: 'g' }), makeRollout('h1', { group: 'h', date: '2020-02-29' }), ...many], roomy);
    await bed.store.submit([makeRollout('h2', { group: 'h' }), makeRollout('later'), makeRollout('a', { group: 'g' })], roomy);
    await bed.store.submit([...many.map((_, i) => makeRollout(`m${i}`, { group: `new-${i}` })), makeRollout('d', { group: 'g' })], roomy);
    assert.deepEqual(await Promise.all(['a', 'b', 'c', 'd', 'alone'].map(dateOf)), [start, start, start, start, start]);
    assert.deepEqual(await Promise.all(['h1', 'h2'].map(dateOf)), ['2020-02-29', '2020-02-29']);
    assert.deepEqual(await Promise.all(['later', 'n0', 'm0', 'm39'].map(dateOf)), [later, later, later, later]);
  });

  test('a submitted rollout is readable in another process, unchanged', async () => {
    await using bed = await openTimedBed(openBed);
    const rollout = makeRollout('a', { group: 'g', metadata: { n: 1, deep: ['π'] } });
    assert.deepEqual(await bed.store.submit([rollout], roomy), {
      kind: 'accepted',
      rollouts: [{ id: 'a', state: 'queued', created: true }],
    });
    const other = await bed.another();
    assert.deepEqual(await other.get(makeId('a')), {
      id: 'a',
      submission: { ...rollout.submission, date: new Date(bed.clock.now()).toISOString() },
      digest: rollout.digest,
      group: 'g',
      state: 'queued',
      attempt: 0,
      retries: 0,
      losses: 0,
      failures: [],
      createdAtMs: bed.clock.now(),
    });
    assert.equal(await other.get(makeId('b')), undefined);
  });

  test('a repeated submission returns the current state and changes nothing', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await claimOne(bed.store, { id: 'a', worker });
    const before = await bed.store.lastEventId();
    const again = await bed.store.submit([makeRollout('a')], roomy);
    assert.deepEqual(again, { kind: 'accepted', rollouts: [{ id: 'a', state: 'init', created: false }] });
    assert.equal(await bed.store.lastEventId(), before);
  });

  test('an id with a different digest is a conflict, and nothing of that call is accepted', async () => {
    await using bed = await openTimedBed(openBed);
    await submitAll(bed.store, ['a', 'b']);
    const outcome = await bed.store.submit([makeRollout('new'), makeRollout('b', { task: { other: 1 } })], roomy);
    assert.deepEqual(outcome, { kind: 'conflict', ids: ['b'] });
    assert.equal(await bed.store.get(makeId('new')), undefined);
  });

  test('an id that appears twice in one call is created once, and is a conflict if the digests differ', async () => {
    await using bed = await openTimedBed(openBed);
    const outcome = await bed.store.submit([makeRollout('a'), makeRollout('a')], roomy);
    const accepted = { id: 'a', state: 'queued' };
    assert.deepEqual(outcome, {
      kind: 'accepted',
      rollouts: [
        { ...accepted, created: true },
        { ...accepted, created: false },
      ],
    });
    const twice = await bed.store.submit([makeRollout('b'), makeRollout('b', { task: {} })], roomy);
    assert.deepEqual(twice, { kind: 'conflict', ids: ['b'] });
  });

  test('a queue that would exceed its limit accepts nothing, and known ids do not count', async () => {
    await using bed = await openTimedBed(openBed);
    const two = [makeRollout('a'), makeRollout('b')];
    assert.deepEqual(await bed.store.submit(two, { maxQueued: 1 }), { kind: 'full', queued: 0 });
    assert.equal((await bed.store.submit(two, { maxQueued: 2 })).kind, 'accepted');
    assert.equal((await bed.store.submit(two, { maxQueued: 1 })).kind, 'accepted');
    assert.deepEqual(await bed.store.submit([...two, makeRollout('c')], { maxQueued: 2 }), { kind: 'full', queued: 2 });
    assert.equal((await bed.store.counts()).queued, 2);
  });

  test('a rollout cancelled before it arrives is created as cancelled, and does not count as queued', async () => {
    await using bed = await openTimedBed(openBed);
    assert.equal(await bed.store.cancel(makeId('a'), { tombstoneMs }), 'cancelled');
    const outcome = await bed.store.submit([makeRollout('a')], { maxQueued: 0 });
    assert.deepEqual(outcome, { kind: 'accepted', rollouts: [{ id: 'a', state: 'cancelled', created: true }] });
    assert.equal((await bed.store.get(makeId('a')))?.endedAtMs, bed.clock.now());
    const { events } = await bed.store.events(0, { limit: 10 });
    assert.deepEqual(
      events.map(({ kind, data }) => [kind, data.state]),
      [['rollout-end', 'cancelled']],
    );
  });

  test('an early cancellation expires', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.cancel(makeId('a'), { tombstoneMs });
    bed.clock.advance(tombstoneMs + 1);
    const outcome = await bed.store.submit([makeRollout('a')], roomy);
    assert.deepEqual(outcome, { kind: 'accepted', rollouts: [{ id: 'a', state: 'queued', created: true }] });
  });

  test('cancelling a queued rollout ends it, and it is never claimed', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await submitAll(bed.store, ['a']);
    assert.equal(await bed.store.cancel(makeId('a'), { tombstoneMs }), 'cancelled');
    assert.equal((await bed.store.get(makeId('a')))?.state, 'cancelled');
    assert.deepEqual(await bed.store.claim(worker, 1), []);
    assert.equal(await bed.store.cancel(makeId('a'), { tombstoneMs }), 'ended');
  });

  test('cancelling a rollout in any stage notifies its worker once, and the worker ends it', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const untouched = await claimOne(bed.store, { id: 'untouched', worker });
    const renew = () => bed.store.renew(worker, { leaseMs, report: makeReport(0) });
    for (const state of ['init', 'ready', 'run', 'evaluate'] as const) {
      const claim = await claimOne(bed.store, { id: state, worker });
      await moveUpTo(bed.store, claim, state);
      assert.equal(await bed.store.cancel(claim.id, { tombstoneMs }), 'asked');
      assert.equal(await bed.store.cancel(claim.id, { tombstoneMs }), 'asked');
      assert.equal((await bed.store.get(claim.id))?.state, state);
      assert.deepEqual(await renew(), { alive: true, cancelled: [state] });
      assert.equal(await bed.store.finish(claim, { state: 'cancelled' }), true);
      assert.deepEqual(await renew(), { alive: true, cancelled: [] });
      assert.equal(await bed.store.cancel(claim.id, { tombstoneMs }), 'ended');
    }
    const { events } = await bed.store.events(0, { limit: 10, kinds: ['rollout-cancel'] });
    assert.deepEqual(
      events.map((event) => [event.rollout_id, event.worker_id]),
      ['init', 'ready', 'run', 'evaluate'].map((id) => [id, 'w']),
    );
    assert.equal(await bed.store.move(untouched, 'ready'), true);
  });

  test('a list is in the order of submission, page by page, filtered by state, group and scenario', async () => {
    await using bed = await openTimedBed(openBed);
    const ids = ['e', 'd', 'c', 'b', 'a'];
    await submitAll(bed.store, ids);
    await submitAll(bed.store, ['g1', 'g2'], { group: 'g', scenario: 'shell' });
    const seen: string[] = [];
    for (let after: string | undefined, more = true; more; more = after !== undefined) {
      const page = await bed.store.list(definedOf({ limit: 2, after }));
      seen.push(...page.rollouts.map(({ id }) => id));
      after = page.next;
    }
    assert.deepEqual(seen, [...ids, 'g1', 'g2']);
    await bed.store.cancel(makeId('c'), { tombstoneMs });
    const idsOf = async (filter: object) => (await bed.store.list({ limit: 10, ...filter })).rollouts.map(({ id }) => id);
    assert.deepEqual(await idsOf({ state: 'cancelled' }), ['c']);
    assert.deepEqual(await idsOf({ group: groupId.parse('g') }), ['g1', 'g2']);
    assert.deepEqual(await idsOf({ scenario: 'math', state: 'queued' }), ['e', 'd', 'b', 'a']);
    assert.deepEqual(await idsOf({ scenario: 'nothing' }), []);
    assert.deepEqual(await idsOf({ order: 'newest', state: 'queued' }), ['g2', 'g1', 'a', 'b', 'd', 'e']);
    const newest = await bed.store.list({ limit: 2, order: 'newest' });
    assert.deepEqual(await idsOf({ limit: 2, order: 'newest', after: newest.next }), ['a', 'b']);
    await assert.rejects(bed.store.list({ limit: 1, after: "1' OR 1" }), { code: 'bad-request' });
  });

  test('a list of a prefix has the rollouts whose id begins with it, in the order of their ids', async () => {
    await using bed = await openTimedBed(openBed);
    await submitAll(bed.store, ['r-2', 'r', 'r-1', 'R-1', 'r-10', 'r.1', 'r_1', 'rz', 's']);
    await bed.store.cancel(makeId('r-1'), { tombstoneMs });
    const list = async (filter: object) => {
      const { rollouts, next } = await bed.store.list({ limit: 2, ...filter });
      return { ids: rollouts.map(({ id }) => id), next };
    };
    assert.deepEqual(await list({ prefix: 'r-1' }), { ids: ['r-1', 'r-10'], next: undefined });
    assert.deepEqual((await list({ prefix: 'r', limit: 9 })).ids, ['r', 'r-1', 'r-10', 'r-2', 'r.1', 'r_1', 'rz']);
    assert.deepEqual((await list({ prefix: 'r', order: 'newest' })).ids, ['rz', 'r_1']);
    const { ids, next } = await list({ prefix: 'r-' });
    assert.deepEqual([ids, await list({ prefix: 'r-', after: next })], [['r-1', 'r-10'], { ids: ['r-2'], next: undefined }]);
    assert.deepEqual((await list({ prefix: 'r-', state: 'queued' })).ids, ['r-10', 'r-2']);
    assert.deepEqual((await list({ prefix: 't' })).ids, []);
  });
}
