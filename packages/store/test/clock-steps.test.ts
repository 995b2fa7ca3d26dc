// What a wrong date leaves behind in the store: delays, leases and retention recover once the date is right, also if no process was
// there to see it step.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { backendId, workerId } from '@millrace/protocol';
import { claimOne, FakeClock, makeBatch, makeFailure, makeGroup, makeReport, makeResult, makeTrajectory, toBatch } from '@millrace/testkit';
import type { Store } from '../src/store.ts';
import { openSqliteBed } from './sqlite/bed.ts';

const leaseMs = 10_000;
const dayMs = 86_400_000;
const rules = { leaseMs, maxLosses: 3 };

async function openBed() {
  const clock = new FakeClock();
  return Object.assign(await openSqliteBed(clock), { clock });
}

async function register(store: Store, name: string) {
  const id = workerId.parse(name);
  await store.registerWorker({ id, host: 'host', pid: 1 }, { leaseMs });
  return id;
}

describe('after a clock that was a day ahead is set back', { timeout: 60_000 }, () => {
  test('a rollout that waits for its retry is claimed', async () => {
    await using bed = await openBed();
    bed.clock.step(dayMs);
    const claim = await claimOne(bed.store, { id: 'a', worker: await register(bed.store, 'w') });
    await bed.store.retry(claim, makeFailure('backend-failed', 1), { delayMs: 1000 });
    bed.clock.step(-dayMs);
    const store = await bed.another();
    const worker = await register(store, 'next');
    assert.deepEqual(
      (await store.claim(worker, 1)).map(({ id, attempt }) => [id, attempt]),
      [['a', 2]],
    );
  });

  test('a rollout of a worker that died meanwhile is lost within two leases', async () => {
    await using bed = await openBed();
    bed.clock.step(dayMs);
    const { id } = await claimOne(bed.store, { id: 'a', worker: await register(bed.store, 'w') });
    bed.clock.step(-dayMs);
    const store = await bed.another();
    await store.expire(rules);
    bed.clock.advance(leaseMs);
    assert.equal(await store.expire(rules), 1);
    assert.equal((await store.get(id))?.state, 'queued');
  });

  test('a worker that ended meanwhile is known to have ended', async () => {
    await using bed = await openBed();
    bed.clock.step(dayMs);
    const worker = await register(bed.store, 'w');
    await bed.store.dropWorker(worker, rules);
    bed.clock.step(-dayMs);
    const [record] = await bed.store.workers();
    assert.deepEqual([record?.hasEnded, (record?.leaseUntilMs ?? 0) > bed.clock.now()], [true, true]);
  });

  test('a webhook that failed meanwhile is due', async () => {
    await using bed = await openBed();
    bed.clock.step(dayMs);
    await bed.store.createBatch(makeBatch('b', { target: 1, group_size: 1, webhook: { url: 'http://127.0.0.1:9/' } }));
    await bed.store.beginGroup(makeGroup('b', 0, 1));
    const worker = await register(bed.store, 'w');
    const [claim] = await bed.store.claim(worker, 1);
    assert.ok(claim);
    for (const state of ['ready', 'run', 'evaluate'] as const) await bed.store.move(claim, state);
    await bed.store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, 1) });
    const [group] = await bed.store.openGroups(toBatch('b'));
    assert.ok(group);
    await bed.store.settleGroup({ batch: toBatch('b'), group: group.id, state: 'delivered', members: [claim.id] });
    await bed.store.noteWebhook({ batch: toBatch('b'), seq: 1, delayMs: 500 });
    assert.equal((await bed.store.dueWebhooks()).due.length, 0);
    bed.clock.step(-dayMs);
    assert.equal((await bed.store.dueWebhooks()).due.length, 1);
  });

  test('a backend that broke meanwhile is probed', async () => {
    await using bed = await openBed();
    const id = backendId.parse('b');
    await bed.store.joinBackend({ id, url: 'http://127.0.0.1:9', dialect: 'vllm', policyVersion: 0, state: 'up' });
    bed.clock.step(dayMs);
    await bed.store.breakBackend(id, { error: 'down' });
    bed.clock.step(-dayMs);
    assert.equal(await bed.store.takeProbe(id), 0);
  });
});

describe('after a clock steps a year ahead', { timeout: 60_000 }, () => {
  const ages = { endedMs: dayMs, eventsMs: dayMs };

  async function finishOne(store: Store) {
    const claim = await claimOne(store, { id: 'a', worker: await register(store, 'w') });
    await store.finish(claim, { state: 'cancelled' });
  }

  test('retention waits, also in a process that starts after another one saw the step', async () => {
    await using bed = await openBed();
    await finishOne(bed.store);
    bed.clock.step(365 * dayMs);
    await bed.store.expire(rules); // sees the step
    await bed.store.renew(workerId.parse('w'), { leaseMs, report: makeReport(0) });
    await register(bed.store, 'later'); // the newest event has the new date
    const store = await bed.another();
    assert.equal(await store.retain(ages), 0);
    bed.clock.advance(dayMs - 1);
    assert.equal(await store.retain(ages), 0);
    bed.clock.advance(1);
    assert.equal(await store.retain(ages), 1);
  });

  test('retention waits, also if it stepped while the service was off, and the service starts twice', async () => {
    await using bed = await openBed();
    await finishOne(bed.store);
    bed.clock.step(365 * dayMs);
    const first = await bed.another();
    assert.equal(await first.retain(ages), 0);
    await register(first, 'later');
    const second = await bed.another();
    assert.equal(await second.retain(ages), 0);
    bed.clock.advance(dayMs);
    assert.equal(await second.retain(ages), 1);
  });
});
