// The contract suite: what depends on the machine of a worker. Work that requires labels goes to machines that have them, and a backend
// that one machine cannot reach stays there for the others.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { backendId, type WorkerId } from '@millrace/protocol';
import type { Store } from '@millrace/store';
import { leaseMs, makeFailure, makeReport, maxLosses, moveUpTo, type OpenBed, openTimedBed, registerWorker, submitAll } from './bed/bed.ts';
import { begin, e, makeBatch, makeEvaluation, makeGroup, toBatch } from './bed/bed-batches.ts';

const a100 = { gpu: 'a100', disk: 'fast' };

export function defineMachineTests(openBed: OpenBed): void {
  describe('machines', () => {
    defineLabelTests(openBed);
    defineHealthTests(openBed);
  });
}

function defineLabelTests(openBed: OpenBed): void {
  test('a rollout that requires labels is claimed only by a machine that has them, and delays no other', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await submitAll(store, ['gpu'], { requires: { gpu: 'a100' }, priority: 5 });
    await submitAll(store, ['any']);
    const claim = async (labels?: Record<string, string>) => (await store.claim(worker, 10, labels)).map(({ id }) => id);
    assert.deepEqual(await claim(), ['any']);
    assert.deepEqual(await claim({ gpu: 't4' }), []);
    assert.deepEqual(await claim(a100), ['gpu']);
    const requires = { gpu: 'a100' };
    assert.deepEqual((await store.get((await submitOne(store, 'more', requires)).id))?.submission.requires, requires);
    const [load] = (await store.classes()).filter(({ queued }) => queued > 0);
    assert.deepEqual([load?.name, load?.requires, load?.queued], ['', requires, 1]);
  });

  test('what requires labels goes back to its own line after a retry, and when it is suspect', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    await submitAll(store, ['gpu'], { requires: a100 });
    const [first] = await store.claim(await registerWorker(store, 'w1'), 1, a100);
    assert.ok(first);
    await store.retry(first, makeFailure('backend-failed', 1), { delayMs: 0 });
    for (const name of ['w2', 'w3']) {
      assert.deepEqual(await store.claim(await registerWorker(store, `plain-${name}`), 1), []);
      assert.equal((await store.claim(await registerWorker(store, name), 1, a100)).length, 1);
      clock.advance(leaseMs);
      await store.expire({ leaseMs, maxLosses: 9 });
    }
    assert.deepEqual(await store.claim(await registerWorker(store, 'plain'), 1), [], 'it lost two workers');
    assert.equal((await store.claim(await registerWorker(store, 'able'), 1, a100)).length, 1);
  });

  test('a rollout that was given back with a requirement is claimed only by a machine that has it', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await submitAll(store, ['r', 'other']);
    const [claim, other] = await store.claim(worker, 2);
    assert.ok(claim && other);
    await store.release(other);
    assert.equal(await store.release(claim, { requires: { 'scenario:new': 'loaded' } }), true);
    assert.deepEqual((await store.get(claim.id))?.requires, { 'scenario:new': 'loaded' });
    assert.deepEqual(
      (await store.claim(worker, 2)).map(({ id }) => id),
      ['other'],
    );
    assert.deepEqual(
      (await store.claim(worker, 2, { 'scenario:new': 'loaded' })).map(({ id }) => id),
      ['r'],
    );
  });

  test('the siblings of a batch require what the batch does, its share is of the machines that have it, and its class ends with it', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    for (const [name, labels] of [
      ['plain', {}],
      ['able', a100],
    ] as const) {
      const machine = { id: name, name, labels, cpus: 1, memory_bytes: 1 };
      await store.renew(await registerWorker(store, name), { leaseMs, report: { ...makeReport(0), machine } });
    }
    await store.createBatch(makeBatch('b', { target: 1, requires: { gpu: 'a100' } }));
    await store.beginGroup(makeGroup('b', 0));
    assert.equal((await store.load(toBatch('b'))).slots, (await store.load()).slots / 2);
    assert.deepEqual(await store.claim(workerOf('plain'), 9), []);
    assert.equal((await store.claim(workerOf('able'), 9, a100)).length, 2);
    await store.endBatch(toBatch('b'), 'cancelled');
    await store.dropWorker(workerOf('able'), { maxLosses });
    clock.advance(10_000);
    await store.retain({ endedMs: 1000, eventsMs: 3_600_000 });
    assert.deepEqual(await store.classes(), []);
  });

  test('the samples of an evaluation require what it does, also when they are taken again, and count as its queue', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    const worker = await registerWorker(store, 'w');
    const requires = { gpu: 'a100' };
    await store.createEvaluation(makeEvaluation({ count: 2, requires }));
    assert.deepEqual((await store.evaluation(e))?.plan.requires, requires);
    await begin(store, 0, 1);
    assert.deepEqual(
      (await store.unbegunEvaluations()).map(({ queued }) => queued),
      [2],
    );
    assert.deepEqual(await store.claim(worker, 9), []);
    const claims = await store.claim(worker, 9, a100);
    assert.equal(claims.length, 2);
    for (const claim of claims) await store.finish(claim, { state: 'failed', failure: makeFailure('backend-failed', 1) });
    assert.equal(await store.retryUnscored(e, { limit: 9 }), 2);
    assert.deepEqual(await store.claim(worker, 9), []);
    const [first, second] = await store.claim(worker, 9, a100);
    assert.ok(first && second);
    await store.release(first, { requires: { 'scenario:new': 'loaded' } });
    const [load] = (await store.classes()).filter(({ queued }) => queued > 0);
    assert.deepEqual([load?.kind, load?.name, load?.requires], ['evaluation', 'e', { ...requires, 'scenario:new': 'loaded' }]);
    await store.cancelEvaluation(e);
    await store.dropWorker(worker, { maxLosses });
    clock.advance(10_000);
    await store.retain({ endedMs: 1000, eventsMs: 3_600_000 });
    assert.deepEqual(await store.classes(), []);
  });
}

async function submitOne(store: Store, id: string, requires: Record<string, string>) {
  await submitAll(store, [id], { requires });
  const { rollouts } = await store.list({ prefix: id, limit: 1 });
  return rollouts[0] ?? assert.fail();
}

function workerOf(name: string): WorkerId {
  return name as WorkerId;
}

function defineHealthTests(openBed: OpenBed): void {
  const b = backendId.parse('b');
  const error = 'connect ECONNREFUSED';

  /** A rollout of a worker on each host, all in run; the first one's is placed on the backend, and the others' too unless it is idle. */
  async function openHosts(store: Store, hosts: readonly string[]) {
    await store.joinBackend({ id: b, url: 'http://b', dialect: 'vllm', state: 'up' });
    return await Array.fromAsync(hosts, async (host) => {
      await submitAll(store, [`r-${host}`]);
      const [claim] = await store.claim(await registerWorker(store, `w-${host}`, host), 1);
      assert.ok(claim);
      await moveUpTo(store, claim, 'run');
      return claim;
    });
  }

  test('a machine that cannot reach a backend breaks it for itself, and probes it alone until it recovers', async () => {
    await using bed = await openTimedBed(openBed);
    const { store, clock } = bed;
    const [near, far] = await openHosts(store, ['near', 'far']);
    assert.ok(near && far);
    for (const claim of [near, far]) assert.equal(await store.place(claim, {}), 'b');
    await store.breakBackend(b, { error, machine: 'far' });
    await store.breakBackend(b, { error, machine: 'far' });
    const [record] = await store.backends();
    assert.deepEqual(record?.health, { error, errorAtMs: clock.now(), brokenFor: [{ machine: 'far', sinceMs: clock.now() }] });
    assert.deepEqual([await store.place(near, {}), await store.place(far, {})], ['b', undefined]);
    assert.equal(await store.takeProbe(b, { machine: 'near' }), undefined);
    assert.equal(await store.takeProbe(b, { machine: 'far' }), 1000);
    clock.advance(1000);
    assert.equal(await store.takeProbe(b, { machine: 'far' }), 0);
    await store.breakBackend(b, { error, machine: 'far', isProbe: true });
    assert.equal(await store.takeProbe(b, { machine: 'far' }), 2000);
    clock.advance(2000);
    await store.recoverBackend(b, { machine: 'far' });
    assert.deepEqual([await store.place(far, {}), await store.takeProbe(b, { machine: 'far' })], ['b', undefined]);
  });

  test('a backend is broken for all once more than half of the machines that use it cannot reach it', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const claims = await openHosts(store, ['m1', 'm2', 'm3', 'idle']);
    for (const claim of claims.slice(0, 3)) await store.place(claim, {});
    const isBroken = async () => (await store.backends())[0]?.health?.brokenAtMs !== undefined;
    await store.breakBackend(b, { error, machine: 'm1' });
    assert.equal(await isBroken(), false);
    await store.breakBackend(b, { error, machine: 'm2' });
    assert.equal(await isBroken(), true);
    assert.equal(await store.place(claims[3] ?? assert.fail(), {}), undefined);
    await store.recoverBackend(b, { machine: 'idle' });
    for (const claim of claims) assert.equal(await store.place(claim, {}), 'b', 'it works for all again');
  });

  test('a machine that uses a backend alone breaks it for all, and one that is gone has no say', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const [first, second] = await openHosts(store, ['m1', 'm2']);
    assert.ok(first && second);
    await store.place(first, {});
    await store.breakBackend(b, { error, machine: 'm1' });
    assert.notEqual((await store.backends())[0]?.health?.brokenAtMs, undefined);
    await store.recoverBackend(b, { machine: 'm2' });
    for (const claim of [first, second]) await store.place(claim, {});
    await store.breakBackend(b, { error, machine: 'm1' });
    await store.dropWorker(first.worker, { maxLosses });
    const third = await registerWorker(store, 'w-m3', 'm3');
    await submitAll(store, ['r-m3']);
    for (const claim of await store.claim(third, 2)) {
      await moveUpTo(store, claim, 'run');
      await store.place(claim, {});
    }
    await store.breakBackend(b, { error, machine: 'm2' });
    assert.equal((await store.backends())[0]?.health?.brokenAtMs, undefined, 'm3 can reach it, and m1 is gone');
  });
}
