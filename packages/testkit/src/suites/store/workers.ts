// The store's promises about workers and their leases, and about backends.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BackendRecord } from '@millrace/engines';
import { type BackendId, backendId } from '@millrace/protocol';
import {
  claimOne,
  leaseMs,
  makeId,
  makeReport,
  maxLosses,
  moveUpTo,
  type OpenBed,
  openTimedBed,
  registerWorker,
  submitAll,
} from './bed/bed.ts';

const tenYearsMs = 10 * 365 * 24 * 3_600_000;

const clockSteps: readonly [string, number][] = [
  ['ahead by 20 seconds', 20_000],
  ['ahead by ten years', tenYearsMs],
  ['back by ten years', -tenYearsMs],
];

export function defineWorkerTests(openBed: OpenBed): void {
  test('workers are listed with their latest report', async () => {
    await using bed = await openTimedBed(openBed);
    const startedAtMs = bed.clock.now();
    const worker = await registerWorker(bed.store, 'w');
    bed.clock.advance(100);
    await bed.store.renew(worker, { leaseMs, report: makeReport(7) });
    const other = await bed.another();
    const leaseUntilMs = bed.clock.now() + leaseMs;
    assert.deepEqual(await other.workers(), [
      { id: 'w', host: 'host', pid: 1, startedAtMs, leaseUntilMs, hasEnded: false, report: makeReport(7) },
    ]);
  });

  test('a worker id can be used only once', async () => {
    await using bed = await openTimedBed(openBed);
    await registerWorker(bed.store, 'w');
    await assert.rejects(registerWorker(bed.store, 'w'), { code: 'conflict' });
  });

  test('a worker with an expired lease claims nothing, and may renew until the lease is revoked', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await submitAll(bed.store, ['a']);
    bed.clock.advance(leaseMs);
    assert.deepEqual(await bed.store.claim(worker, 1), []);
    assert.deepEqual(await bed.store.renew(worker, { leaseMs, report: makeReport(0) }), { alive: true, cancelled: [] });
    assert.equal(await bed.store.expire({ leaseMs, maxLosses }), 0);
    assert.equal((await bed.store.claim(worker, 1)).length, 1);
  });

  test('a renewed lease keeps what the worker holds', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const claim = await claimOne(bed.store, { id: 'a', worker });
    for (let round = 0; round < 3; round++) {
      bed.clock.advance(leaseMs - 1);
      assert.equal((await bed.store.renew(worker, { leaseMs, report: makeReport(0) })).alive, true);
      assert.equal(await bed.store.expire({ leaseMs, maxLosses }), 0);
    }
    assert.equal(await bed.store.move(claim, 'ready'), true);
  });

  test('a renewal that names what the worker holds returns the rest to the queue', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const held = await claimOne(bed.store, { id: 'a', worker });
    const unheld = await claimOne(bed.store, { id: 'b', worker });
    await moveUpTo(bed.store, unheld, 'evaluate');
    const options = { leaseMs, report: makeReport(0) };
    await bed.store.renew(worker, options);
    assert.equal((await bed.store.get(unheld.id))?.state, 'evaluate', 'a renewal without names takes nothing back');
    await bed.store.renew(worker, { ...options, held: { claims: [held], maxLosses } });
    assert.equal(await bed.store.finish(unheld, { state: 'cancelled' }), false);
    const record = await bed.store.get(unheld.id);
    assert.deepEqual([record?.state, record?.losses, record?.failures[0]?.code], ['queued', 1, 'worker-lost']);
    assert.match(record?.failures[0]?.message ?? '', /worker w no longer holds rollout b, which was in evaluate/);
    assert.equal(await bed.store.move(held, 'ready'), true);
    const [again] = await bed.store.claim(worker, 1);
    await bed.store.renew(worker, { ...options, held: { claims: [held, unheld], maxLosses } });
    assert.equal((await bed.store.get(unheld.id))?.losses, 2, 'an outdated attempt is not held');
    assert.equal(again?.attempt, 2);
  });

  test('expiry requeues the rollouts of a lost worker, counts the losses, and ends the worker', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    const claim = await claimOne(bed.store, { id: 'a', worker });
    await moveUpTo(bed.store, claim, 'run');
    bed.clock.advance(leaseMs);
    assert.equal(await bed.store.expire({ leaseMs, maxLosses }), 1);
    const record = await bed.store.get(claim.id);
    assert.deepEqual([record?.state, record?.losses, record?.retries, record?.worker], ['queued', 1, 0, undefined]);
    assert.deepEqual(
      record?.failures.map(({ code, stage, attempt }) => [code, stage, attempt]),
      [['worker-lost', 'run', 1]],
    );
    assert.deepEqual(await bed.store.renew(worker, { leaseMs, report: makeReport(0) }), { alive: false, cancelled: [] });
    assert.deepEqual(await bed.store.claim(worker, 1), []);
    assert.equal(await bed.store.expire({ leaseMs, maxLosses }), 0);
  });

  for (const [where, stepMs] of clockSteps) {
    test(`a clock that steps ${where} expires no worker, and a lost worker still expires`, async () => {
      await using bed = await openTimedBed(openBed);
      const other = await bed.another();
      const worker = await registerWorker(bed.store, 'w');
      const claim = await claimOne(bed.store, { id: 'a', worker });
      const lost = await claimOne(bed.store, { id: 'b', worker: await registerWorker(bed.store, 'lost') });
      bed.clock.step(stepMs);
      for (const store of [bed.store, other]) assert.equal(await store.expire({ leaseMs, maxLosses }), 0);
      assert.equal((await bed.store.renew(worker, { leaseMs, report: makeReport(0) })).alive, true);
      assert.equal(await bed.store.move(claim, 'ready'), true);
      bed.clock.advance(leaseMs - 1);
      assert.equal(await other.expire({ leaseMs, maxLosses }), 0);
      assert.equal((await bed.store.renew(worker, { leaseMs, report: makeReport(0) })).alive, true);
      bed.clock.advance(1);
      assert.equal(await other.expire({ leaseMs, maxLosses }), 1);
      assert.equal((await bed.store.get(lost.id))?.losses, 1);
    });
  }

  test('a rollout that reaches the maximum of losses fails as worker-lost', async () => {
    await using bed = await openTimedBed(openBed);
    await submitAll(bed.store, ['a']);
    for (let loss = 1; loss <= maxLosses; loss++) {
      const worker = await registerWorker(bed.store, `w${loss}`);
      assert.equal((await bed.store.claim(worker, 1))[0]?.attempt, loss);
      await bed.store.dropWorker(worker, { maxLosses });
    }
    const record = await bed.store.get(makeId('a'));
    assert.deepEqual(
      [record?.state, record?.losses, record?.failure?.code, record?.failure?.blame],
      ['failed', maxLosses, 'worker-lost', 'service'],
    );
    assert.equal(record?.failures.length, maxLosses - 1);
  });

  test('a rollout that was asked to cancel is cancelled when its worker is lost', async () => {
    await using bed = await openTimedBed(openBed);
    const claim = await claimOne(bed.store, { id: 'a', worker: await registerWorker(bed.store, 'w') });
    await bed.store.cancel(claim.id, { tombstoneMs: 0 });
    bed.clock.advance(leaseMs);
    assert.equal(await bed.store.expire({ leaseMs, maxLosses }), 1);
    assert.equal((await bed.store.get(claim.id))?.state, 'cancelled');
  });

  test('a dropped worker loses everything immediately, and dropping it again changes nothing', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await submitAll(bed.store, ['a', 'b']);
    await bed.store.claim(worker, 2);
    await bed.store.dropWorker(worker, { maxLosses });
    assert.equal((await bed.store.counts()).queued, 2);
    assert.equal((await bed.store.renew(worker, { leaseMs, report: makeReport(0) })).alive, false);
    assert.equal((await bed.store.workers())[0]?.leaseUntilMs, bed.clock.now());
    const before = await bed.store.lastEventId();
    await bed.store.dropWorker(worker, { maxLosses });
    assert.equal(await bed.store.lastEventId(), before);
  });

  test('backends join, change, drain and leave, and their keys never appear in events', async () => {
    await using bed = await openTimedBed(openBed);
    const [a, b] = [makeBackend('a'), makeBackend('b', { apiKey: 'secret', model: 'm', logprobsMode: 'raw' })];
    await bed.store.joinBackend(b);
    await bed.store.joinBackend(a);
    assert.deepEqual(await (await bed.another()).backends(), [a, b]);
    await bed.store.joinBackend({ ...a, policyVersion: 4 });
    assert.equal(await bed.store.drainBackend(b.id), true);
    assert.deepEqual(await bed.store.backends(), [
      { ...a, policyVersion: 4 },
      { ...b, state: 'draining' },
    ]);
    assert.equal(await bed.store.leaveBackend(b.id), true);
    assert.deepEqual([await bed.store.leaveBackend(b.id), await bed.store.drainBackend(b.id)], [false, false]);
    assert.deepEqual([await bed.store.clearBackends(), await bed.store.clearBackends()], [1, 0]);
    const { events } = await bed.store.events(0, { limit: 99 });
    const expected = ['backend-join b', 'backend-join a', 'backend-join a', 'backend-drain b', 'backend-leave b', 'backend-leave a'];
    assert.deepEqual(
      events.map(({ kind, backend_id }) => `${kind} ${backend_id}`),
      expected,
    );
    assert.doesNotMatch(JSON.stringify(events), /secret/);
  });
}

function makeBackend(id: string, changes: Partial<BackendRecord> = {}): BackendRecord {
  const name: BackendId = backendId.parse(id);
  return { id: name, url: `http://${id}:8000`, dialect: 'vllm', policyVersion: 0, state: 'up', ...changes };
}
