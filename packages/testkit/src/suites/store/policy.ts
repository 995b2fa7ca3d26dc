// The store's promises about the policy: when a pause is complete, and what a resume changes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BackendRecord } from '@millrace/engines';
import { backendId } from '@millrace/protocol';
import type { Store } from '@millrace/store';
import { leaseMs, maxLosses, type OpenBed, openTimedBed, registerWorker } from './bed/bed.ts';

const resume = { cachesFlushed: true };

export function definePolicyTests(openBed: OpenBed): void {
  test('a new store runs at version 0', async () => {
    await using bed = await openTimedBed(openBed);
    const { state, mode, pause, flushes, policyVersion, generating } = await bed.store.policy();
    assert.deepEqual([state, mode, pause, flushes, policyVersion, generating], ['running', undefined, 0, 0, 0, 0]);
  });

  test('a pause without workers is complete immediately, for every reader', async () => {
    await using bed = await openTimedBed(openBed);
    const paused = await bed.store.pausePolicy({ mode: 'wait' });
    assert.deepEqual([paused.state, paused.mode, paused.pause, paused.sinceMs], ['paused', 'wait', 1, bed.clock.now()]);
    assert.deepEqual(await (await bed.another()).policy(), paused);
  });

  test('a pause is complete only when every worker has seen it and has no call in progress', async () => {
    await using bed = await openTimedBed(openBed);
    const [a, b] = [await registerWorker(bed.store, 'a'), await registerWorker(bed.store, 'b')];
    await bed.store.reportGate(a, { pause: 0, generating: 2 });
    const { state, generating } = await bed.store.pausePolicy({ mode: 'wait' });
    assert.deepEqual([state, generating], ['pausing', 2]);
    await bed.store.reportGate(a, { pause: 0, generating: 0 }); // idle, but has not seen the pause: it may start a call at any time
    await bed.store.reportGate(b, { pause: 1, generating: 0 });
    assert.equal((await bed.store.policy()).state, 'pausing');
    await bed.store.reportGate(a, { pause: 1, generating: 1 });
    assert.equal((await bed.store.policy()).state, 'pausing');
    bed.clock.advance(5);
    await bed.store.reportGate(a, { pause: 1, generating: 0 });
    const paused = await bed.store.policy();
    assert.deepEqual([paused.state, paused.generating, paused.sinceMs], ['paused', 0, bed.clock.now()]);
  });

  test('a report about one pause does not count for the next', async () => {
    await using bed = await openTimedBed(openBed);
    const worker = await registerWorker(bed.store, 'w');
    await bed.store.pausePolicy({ mode: 'wait' });
    await bed.store.reportGate(worker, { pause: 1, generating: 0 });
    await bed.store.resumePolicy(resume);
    assert.equal((await bed.store.pausePolicy({ mode: 'wait' })).state, 'pausing');
    await bed.store.reportGate(worker, { pause: 1, generating: 0 });
    assert.equal((await bed.store.policy()).state, 'pausing');
  });

  test('a lost or dropped worker delays a pause until its lease is revoked', async () => {
    await using bed = await openTimedBed(openBed);
    const dropped = await registerWorker(bed.store, 'dropped');
    const lost = await registerWorker(bed.store, 'lost');
    await bed.store.pausePolicy({ mode: 'wait' });
    await bed.store.dropWorker(dropped, { maxLosses });
    bed.clock.advance(leaseMs - 1);
    await bed.store.expire({ leaseMs, maxLosses });
    assert.equal((await bed.store.policy()).state, 'pausing');
    bed.clock.advance(1);
    assert.equal((await bed.store.policy()).state, 'pausing');
    await bed.store.expire({ leaseMs, maxLosses });
    assert.equal((await bed.store.policy()).state, 'paused');
    await bed.store.reportGate(lost, { pause: 1, generating: 3 });
    assert.equal((await bed.store.policy()).generating, 0);
  });

  test('a pause with an owner is ended by its owner or by force, and one without by anyone', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    assert.equal((await store.pausePolicy({ mode: 'wait', owner: 'a' })).owner, 'a');
    assert.equal((await store.pausePolicy({ mode: 'wait', owner: 'a' })).pause, 1);
    assert.equal((await store.pausePolicy({ mode: 'wait' })).owner, 'a');
    await assert.rejects(store.pausePolicy({ mode: 'wait', owner: 'b' }), { code: 'conflict', message: /paused by a/ });
    for (const request of [{}, { owner: 'b' }, { owner: 'b', policyVersion: 9 }])
      await assert.rejects(store.resumePolicy({ cachesFlushed: true, ...request }), { code: 'conflict', message: /paused by a/ });
    assert.deepEqual([(await store.policy()).state, (await store.policy()).policyVersion], ['paused', 0]);
    const resumed = await store.resumePolicy({ cachesFlushed: true, policyVersion: 1, owner: 'a' });
    assert.deepEqual([resumed.state, resumed.owner, resumed.policyVersion], ['running', undefined, 1]);
    assert.equal((await store.resumePolicy({ cachesFlushed: true, policyVersion: 2 })).policyVersion, 2);

    await store.pausePolicy({ mode: 'wait', owner: 'dead' });
    assert.equal((await store.resumePolicy({ cachesFlushed: true, force: true })).state, 'running');
    assert.equal((await store.pausePolicy({ mode: 'wait' })).owner, undefined);
    assert.equal((await store.pausePolicy({ mode: 'wait', owner: 'b' })).owner, undefined);
    assert.equal((await store.resumePolicy({ cachesFlushed: true, owner: 'c' })).state, 'running');
  });

  test('pausing again can only make the pause stricter, and repeating it writes no event', async () => {
    await using bed = await openTimedBed(openBed);
    await registerWorker(bed.store, 'w');
    await bed.store.pausePolicy({ mode: 'wait' });
    bed.clock.advance(5);
    const strict = await bed.store.pausePolicy({ mode: 'abort' });
    assert.deepEqual([strict.state, strict.mode, strict.pause, strict.sinceMs], ['pausing', 'abort', 1, bed.clock.now() - 5]);
    const last = await bed.store.lastEventId();
    assert.deepEqual(await bed.store.pausePolicy({ mode: 'wait' }), strict);
    assert.deepEqual(await bed.store.pausePolicy({ mode: 'abort' }), strict);
    assert.equal(await bed.store.lastEventId(), last);
  });

  test('a resume names the adapter that samples; later ones keep it, and null returns to the base model', async () => {
    await using bed = await openTimedBed(openBed);
    assert.equal((await bed.store.resumePolicy({ policyVersion: 1, cachesFlushed: true, adapter: 'step-1' })).adapter, 'step-1');
    assert.equal((await bed.store.resumePolicy({ policyVersion: 2, cachesFlushed: true })).adapter, 'step-1');
    assert.equal((await bed.store.resumePolicy({ cachesFlushed: true, adapter: 'step-2' })).adapter, 'step-2');
    assert.equal((await bed.store.resumePolicy({ cachesFlushed: true, adapter: null })).adapter, undefined);
    const { events } = await bed.store.events(0, { limit: 99, kinds: ['policy-resume'] });
    assert.deepEqual(
      events.map(({ data }) => data.adapter),
      ['step-1', 'step-1', 'step-2', undefined],
    );
  });

  test('new weights without flushed caches get a new cache salt, which a flush ends', async () => {
    await using bed = await openTimedBed(openBed);
    const resume = async (request: Parameters<typeof bed.store.resumePolicy>[0]) => (await bed.store.resumePolicy(request)).cacheSalt;
    assert.equal(await resume({ policyVersion: 1, cachesFlushed: true }), undefined);
    const second = await resume({ policyVersion: 2, cachesFlushed: false });
    assert.match(second ?? '', /^policy-2\./);
    assert.equal(await resume({ policyVersion: 3, cachesFlushed: false, saltCaches: false }), second);
    await bed.store.pausePolicy({ mode: 'wait' });
    assert.equal(await resume({ cachesFlushed: false }), second, 'the weights are the same');
    assert.notEqual(await resume({ cachesFlushed: false, adapter: 'a' }), second);
    await bed.store.pausePolicy({ mode: 'wait' });
    assert.notEqual(await resume({ policyVersion: 2, cachesFlushed: false, allowLower: true }), second, 'the same version, other weights');
    assert.equal(await resume({ policyVersion: 4, cachesFlushed: true }), undefined);
  });

  test('a resume sets the version of the policy and of all backends, and repeating it changes nothing', async () => {
    await using bed = await openTimedBed(openBed);
    for (const id of ['a', 'b']) await bed.store.joinBackend(makeBackend(id, 2));
    await bed.store.pausePolicy({ mode: 'abort' });
    const { state, mode, policyVersion, flushes } = await bed.store.resumePolicy({ policyVersion: 7, cachesFlushed: true });
    assert.deepEqual([state, mode, policyVersion, flushes], ['running', undefined, 7, 1]);
    assert.deepEqual(await versionsOf(bed.store), [7, 7]);
    const last = await bed.store.lastEventId();
    assert.equal((await bed.store.resumePolicy({ policyVersion: 7, cachesFlushed: true })).flushes, 1);
    assert.equal(await bed.store.lastEventId(), last);
    await bed.store.pausePolicy({ mode: 'wait' });
    assert.equal((await bed.store.resumePolicy({ cachesFlushed: false })).flushes, 1);
    assert.deepEqual(await versionsOf(bed.store), [7, 7]);
    const { events } = await bed.store.events(0, { limit: 99, kinds: ['policy-pause', 'policy-resume'] });
    assert.deepEqual(
      events.map(({ kind, data }) => [kind, data]),
      [
        ['policy-pause', { state: 'pausing', mode: 'abort' }],
        ['policy-pause', { state: 'paused', mode: 'abort' }],
        ['policy-resume', { policy_version: 7, caches_flushed: true }],
        ['policy-pause', { state: 'pausing', mode: 'wait' }],
        ['policy-pause', { state: 'paused', mode: 'wait' }],
        ['policy-resume', { policy_version: 7, caches_flushed: false }],
      ],
    );
  });

  test('a resume at an older version is a conflict that changes nothing; a backend with newer weights raises the version', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.joinBackend(makeBackend('a', 4));
    await bed.store.joinBackend(makeBackend('b', 3));
    assert.equal((await bed.store.policy()).policyVersion, 4);
    await bed.store.pausePolicy({ mode: 'wait' });
    await assert.rejects(bed.store.resumePolicy({ policyVersion: 3, cachesFlushed: true }), { code: 'conflict' });
    assert.equal((await bed.store.policy()).state, 'paused');
    assert.deepEqual(await versionsOf(bed.store), [4, 3]);
    await bed.store.resumePolicy({ policyVersion: 4, cachesFlushed: true });
    assert.deepEqual(await versionsOf(bed.store), [4, 4]);
  });

  test('a resume that allows it goes back to an older version, on all backends', async () => {
    await using bed = await openTimedBed(openBed);
    for (const id of ['a', 'b']) await bed.store.joinBackend(makeBackend(id, 7));
    await bed.store.pausePolicy({ mode: 'abort' });
    const { state, policyVersion } = await bed.store.resumePolicy({ policyVersion: 3, cachesFlushed: true, allowLower: true });
    assert.deepEqual([state, policyVersion, await versionsOf(bed.store)], ['running', 3, [3, 3]]);
    await bed.store.joinBackend(makeBackend('c', 3));
    assert.equal((await bed.store.policy()).policyVersion, 3);
  });

  test('a backend that joins without a version gets the current policy version', async () => {
    await using bed = await openTimedBed(openBed);
    await bed.store.resumePolicy({ policyVersion: 6, cachesFlushed: true });
    const { policyVersion: _, ...unversioned } = makeBackend('a', 0);
    await bed.store.joinBackend(unversioned);
    assert.deepEqual(await versionsOf(bed.store), [6]);
  });
}

function makeBackend(id: string, policyVersion: number): BackendRecord {
  return { id: backendId.parse(id), url: `http://${id}:8000`, dialect: 'vllm', policyVersion, state: 'up' };
}

async function versionsOf(store: Store): Promise<number[]> {
  return (await store.backends()).map(({ policyVersion }) => policyVersion);
}
