// The contract suite: what several servers on one store agree on. Each test uses two handles, as two servers do.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deliver, finishAll } from './batches.ts';
import { makeId, type OpenBed, openTimedBed } from './bed/bed.ts';
import { makeBatch, makeGroup, toBatch } from './bed/bed-batches.ts';

export function defineServerTests(openBed: OpenBed): void {
  describe('several servers', () => {
    test('of servers that see the same delivery due, one holds it, and another takes it over when the hold ends', async () => {
      await using bed = await openTimedBed(openBed);
      const { store, clock } = bed;
      const other = await bed.another();
      await store.createBatch(makeBatch('b', { target: 2, webhook: { url: 'http://h/' } }));
      await store.beginGroup(makeGroup('b', 0));
      await finishAll(store);
      await store.settleGroup(deliver(toBatch('b'), 0));
      const delivery = { batch: toBatch('b'), seq: 1, leaseMs: 10_000 };
      const holds = await Promise.all([store.holdWebhook(delivery), other.holdWebhook(delivery)]);
      const [heldUntilMs = 0, second] = holds.toSorted();
      assert.deepEqual([heldUntilMs, second], [clock.now() + 10_000, undefined]);
      assert.deepEqual(await other.dueWebhooks(), { due: [], nextAtMs: heldUntilMs });
      clock.advance(4000);
      const extended = (await store.holdWebhook({ ...delivery, heldUntilMs })) ?? assert.fail('its holder may extend it');
      clock.advance(9999);
      assert.equal(await other.holdWebhook(delivery), undefined);
      clock.advance(1);
      assert.equal(await other.holdWebhook(delivery), clock.now() + 10_000, 'its holder died');
      assert.equal(await store.holdWebhook({ ...delivery, heldUntilMs: extended }), undefined, 'and learns it if it was only late');
      await other.noteWebhook({ batch: toBatch('b'), seq: 1 });
      assert.equal(await store.holdWebhook(delivery), undefined, 'what was delivered is not due');
    });

    test('a server that gives up a delivery leaves it due at once', async () => {
      await using bed = await openTimedBed(openBed);
      const { store } = bed;
      await store.createBatch(makeBatch('b', { target: 2, webhook: { url: 'http://h/' } }));
      await store.beginGroup(makeGroup('b', 0));
      await finishAll(store);
      await store.settleGroup(deliver(toBatch('b'), 0));
      const delivery = { batch: toBatch('b'), seq: 1 };
      const heldUntilMs = (await store.holdWebhook({ ...delivery, leaseMs: 10_000 })) ?? assert.fail();
      await store.holdWebhook({ ...delivery, leaseMs: 0, heldUntilMs });
      assert.equal((await store.dueWebhooks()).due.length, 1);
    });

    test('one server has a duty until its lease ends or it gives the duty up', async () => {
      await using bed = await openTimedBed(openBed);
      const { store, clock } = bed;
      const other = await bed.another();
      const duty = { name: 'lead', leaseMs: 10_000 } as const;
      const taken = await Promise.all([store.takeDuty({ ...duty, holder: 'a' }), other.takeDuty({ ...duty, holder: 'b' })]);
      assert.deepEqual(taken.toSorted(), [false, true]);
      const [holder, rival] = taken[0] ? (['a', 'b'] as const) : (['b', 'a'] as const);
      clock.advance(9000);
      assert.equal(await store.takeDuty({ ...duty, holder }), true);
      clock.advance(9999);
      assert.equal(await other.takeDuty({ ...duty, holder: rival }), false);
      clock.advance(1);
      assert.equal(await other.takeDuty({ ...duty, holder: rival }), true);
      assert.equal(await store.takeDuty({ ...duty, holder }), false);
      await other.takeDuty({ ...duty, holder: rival, leaseMs: 0 });
      assert.equal(await store.takeDuty({ ...duty, holder }), true);
    });

    test('a job of a ProRL client is continued once, by a call that repeats it after its server died', async () => {
      await using bed = await openTimedBed(openBed);
      const { store, clock } = bed;
      const other = await bed.another();
      const job = { name: 'aime-1', digest: 'd', leaseMs: 10_000 };
      assert.equal(await store.openProrlJob({ ...job, rollout: makeId('aime-1'), server: 'a' }), true);
      assert.equal(await other.openProrlJob({ ...job, rollout: makeId('aime-1'), server: 'b' }), false, 'its id is taken');
      const repeat = { ...job, server: 'b', maxAgeMs: 60_000 };
      assert.equal(await other.adoptProrlJob(repeat), undefined, 'its server lives');
      clock.advance(5000);
      await store.renewProrlJobs({ server: 'a', leaseMs: 10_000 });
      clock.advance(9999);
      const open = { rollout: 'aime-1', digest: 'd', server: 'a', untilMs: clock.now() + 1, isLive: true };
      assert.deepEqual(await other.prorlJobs('aime-1'), [open]);
      clock.advance(1);
      assert.equal(await other.adoptProrlJob({ ...repeat, digest: 'other' }), undefined, 'it asks for something else');
      const adopted = await Promise.all([other.adoptProrlJob(repeat), store.adoptProrlJob({ ...repeat, server: 'c' })]);
      assert.deepEqual(adopted.toSorted(), ['aime-1', undefined]);
      await other.closeProrlJob(makeId('aime-1'));
      assert.deepEqual(await store.prorlJobs(), []);
    });

    test('what a ProRL client starts, stops and clears holds for all servers', async () => {
      await using bed = await openTimedBed(openBed);
      const other = await bed.another();
      assert.deepEqual(await other.prorlState(), { isRunning: false });
      await bed.store.noteProrl('start');
      await bed.store.noteProrl('clear');
      bed.clock.advance(1000);
      assert.deepEqual(await other.prorlState(), { isRunning: true, clearedAgoMs: 1000 });
      await other.noteProrl('stop');
      assert.equal((await bed.store.prorlState()).isRunning, false);
    });
  });
}
