// The store's promises about placements: counts match what runs, even after a process dies, and a broken backend gets no rollouts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BackendId, backendId } from '@millrace/protocol';
import type { Claim, Store } from '@millrace/store';
import {
  leaseMs,
  makeFailure,
  makeReport,
  makeResult,
  makeTrajectory,
  maxLosses,
  moveUpTo,
  type OpenBed,
  openTimedBed,
  registerWorker,
  submitAll,
} from './bed/bed.ts';

export function definePlacementTests(openBed: OpenBed): void {
  test('two processes that place concurrently balance like one', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a', 'b', 'c');
    const stores = [bed.store, await bed.another()];
    const claims = await runAll(bed.store, numbered(30));
    await Promise.all(claims.map((claim, index) => stores[index % 2]?.place(claim, {})));
    assert.deepEqual(await loads(bed.store), { a: 10, b: 10, c: 10 });
  });

  test('the oldest rollouts that fit into a KV cache are found over all workers, and those of a worker that dies make room', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a', 'b');
    const claims = [...(await runAll(bed.store, ['r1', 'r2'])), ...(await runAll(bed.store, ['r3', 'r4', 'r5']))];
    for (const claim of claims) assert.equal(await bed.store.place(claim, { tokens: 40, exclude: [toId('b')] }), 'a');
    const [first, , third] = claims;
    assert.ok(first && third);
    const find = async (worker: Claim['worker'], tokens: number) => {
      const [a, b] = await bed.store.oldestOn(worker, [
        { id: toId('a'), tokens },
        { id: toId('b'), tokens },
      ]);
      assert.deepEqual(b, { id: 'b', rollouts: [] });
      return a?.rollouts;
    };
    assert.deepEqual([await find(first.worker, 130), await find(third.worker, 130)], [['r1', 'r2'], ['r3']]);
    assert.deepEqual([await find(first.worker, 1), await find(third.worker, 1)], [['r1'], []], 'the first may be too large');
    bed.clock.advance(leaseMs / 2);
    await bed.store.renew(third.worker, { leaseMs, report: makeReport(3) });
    bed.clock.advance(leaseMs / 2);
    await bed.store.expire({ leaseMs, maxLosses });
    assert.deepEqual(await find(third.worker, 130), ['r3', 'r4', 'r5']);
  });

  test('a rollout counts on its backend until it leaves run, for any reason', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    const [done, failed, retried, released, lost] = await runAll(bed.store, numbered(5));
    assert.ok(done && failed && retried && released && lost);
    for (const claim of [done, failed, retried, released, lost]) assert.equal(await bed.store.place(claim, { tokens: 7 }), 'a');
    assert.deepEqual(await bed.store.backendLoads(), [{ id: 'a', inFlight: 5, tokens: 35 }]);
    await bed.store.move(done, 'evaluate');
    assert.deepEqual(await loads(bed.store), { a: 4 });
    await bed.store.finish(failed, { state: 'failed', failure: makeFailure('run-failed', 1) });
    await bed.store.retry(retried, makeFailure('backend-failed', 1), { delayMs: 0 });
    await bed.store.release(released);
    assert.deepEqual(await loads(bed.store), { a: 1 });
    bed.clock.advance(leaseMs);
    await bed.store.expire({ leaseMs, maxLosses });
    assert.deepEqual(await loads(bed.store), {});
    const [again] = await bed.store.claim(await registerWorker(bed.store, 'successor'), 1);
    assert.ok(again);
    await moveUpTo(bed.store, again, 'run');
    assert.deepEqual(await loads(bed.store), {}, 'a new attempt does not count before it is placed');
  });

  test('an outdated claim, or one that is not in run, places nothing', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    const worker = await registerWorker(bed.store, 'w');
    await submitAll(bed.store, ['r']);
    const [claim] = await bed.store.claim(worker, 1);
    assert.ok(claim);
    assert.equal(await bed.store.place(claim, {}), undefined);
    await moveUpTo(bed.store, claim, 'run');
    assert.equal(await bed.store.place({ ...claim, attempt: 2 }, {}), undefined);
    await bed.store.move(claim, 'evaluate');
    await bed.store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory('r', 1) });
    assert.equal(await bed.store.place(claim, {}), undefined);
    assert.deepEqual(await loads(bed.store), {});
  });

  test('an excluded, draining, removed or broken backend gets no rollouts, and a rollout may stay on a draining one', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a', 'b', 'c', 'd');
    const [one, two] = await runAll(bed.store, numbered(2));
    assert.ok(one && two);
    assert.equal(await bed.store.place(one, {}), 'a');
    await bed.store.drainBackend(toId('a'));
    assert.equal(await bed.store.place(one, { isSticky: true }), 'a');
    await bed.store.leaveBackend(toId('b'));
    await bed.store.breakBackend(toId('c'), { error: 'down' });
    assert.equal(await bed.store.place(two, {}), 'd');
    assert.equal(await bed.store.place(two, { exclude: [toId('d')] }), undefined);
    assert.equal(await bed.store.place(one, { exclude: [toId('a')] }), 'd');
    const { events } = await bed.store.events(0, { limit: 99, kinds: ['rollout-place'] });
    assert.deepEqual(
      events.map(({ rollout_id, backend_id, data }) => [rollout_id, backend_id, data.from]),
      [['r0', 'd', 'a']],
    );
  });

  test('siblings share a backend within the bound, until new weights arrive', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a', 'b');
    const group = await runAll(bed.store, ['g0', 'g1', 'g2', 'g3', 'g4', 'g5', 'g6', 'g7'], { group: 'g' });
    const others = await runAll(bed.store, ['x0', 'x1', 'x2']);
    const placed: unknown[] = [];
    for (const claim of [...others, ...group]) placed.push(await bed.store.place(claim, {}));
    assert.deepEqual(placed.join(''), 'ababbbbbbba', 'the last sibling finds b full');
    for (const claim of [...others, ...group]) await bed.store.move(claim, 'evaluate');
    const [late, later] = await runAll(bed.store, ['late', 'later'], { group: 'g' });
    assert.ok(late && later);
    assert.equal(await bed.store.place(late, {}), 'b', 'ended siblings left their prompt in the cache there');
    await bed.store.move(late, 'evaluate');
    for (const id of ['a', 'b']) await bed.store.joinBackend({ ...makeBackend(id), policyVersion: 1 });
    assert.equal(await bed.store.place(later, {}), 'a');
  });

  test('a rollout stays until its backend is much busier than another, and then moves once', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    const claims = await runAll(bed.store, numbered(20));
    for (const claim of claims) await bed.store.place(claim, {});
    await join(bed.store, 'b');
    const routing = { affinityBound: 1.25, spillFactor: 2, spillRollouts: 4 };
    for (const claim of claims) await bed.store.place(claim, { isSticky: true, routing });
    assert.deepEqual(await loads(bed.store), { a: 13, b: 7 });
    for (const claim of claims) await bed.store.place(claim, { isSticky: true, routing });
    assert.deepEqual(await loads(bed.store), { a: 13, b: 7 });
  });

  test('a broken backend is probed by one worker at a time, at increasing intervals, until it recovers', async () => {
    await using bed = await openTimedBed(openBed);
    const other = await bed.another();
    await join(bed.store, 'a');
    const a = toId('a');
    assert.equal(await bed.store.takeProbe(a), undefined);
    await bed.store.breakBackend(a, { error: 'refused' });
    await other.breakBackend(a, { error: 'too late to matter' });
    const health = { error: 'refused', errorAtMs: bed.clock.now(), brokenAtMs: bed.clock.now() };
    assert.deepEqual(await other.backends(), [{ ...makeBackend('a'), health }]);
    for (const waitMs of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      assert.equal(await other.takeProbe(a), waitMs);
      bed.clock.advance(waitMs);
      assert.equal(await bed.store.takeProbe(a), 0);
      assert.equal(await other.takeProbe(a), 21_000);
      await bed.store.breakBackend(a, { error: 'still down', isProbe: true });
    }
    await bed.store.recoverBackend(a);
    await bed.store.recoverBackend(a);
    assert.equal(await other.takeProbe(a), undefined);
    const { events } = await bed.store.events(0, { limit: 99 });
    assert.deepEqual(
      events.map(({ kind }) => kind),
      ['backend-join', 'backend-break', 'backend-recovered'],
    );
    await bed.store.breakBackend(a, { error: 'again' });
    assert.equal(await bed.store.takeProbe(a), 1000);
    await join(bed.store, 'a');
    assert.deepEqual(await bed.store.backends(), [makeBackend('a')], 'joining again clears its health');
  });

  test('what is known about a server adds up without an event, and is forgotten when it joins again', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    const before = await bed.store.lastEventId();
    await bed.store.noteProbe(toId('a'), { route: '/x' });
    await bed.store.noteProbe(toId('a'), { routeReason: 'no /y' });
    await bed.store.noteProbe(toId('gone'), { route: '/x' });
    assert.deepEqual(await bed.store.backends(), [{ ...makeBackend('a'), probe: { route: '/x', routeReason: 'no /y' } }]);
    assert.equal(await bed.store.lastEventId(), before);
    await join(bed.store, 'a');
    assert.deepEqual(await bed.store.backends(), [makeBackend('a')]);
  });

  test('when a probing worker dies, another one probes', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    await bed.store.breakBackend(toId('a'), { error: 'refused' });
    bed.clock.advance(1000);
    assert.equal(await bed.store.takeProbe(toId('a')), 0);
    bed.clock.advance((await bed.store.takeProbe(toId('a'))) ?? 0);
    assert.equal(await bed.store.takeProbe(toId('a')), 0);
  });

  test('contexts and errors are stored without an event, and only for known rollouts and backends', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    const [claim] = await runAll(bed.store, ['r']);
    assert.ok(claim);
    await bed.store.place(claim, { tokens: 10 });
    const before = await bed.store.lastEventId();
    const errors = ['a', 'gone'].map((id) => ({ backend: toId(id), message: 'status 500' }));
    await bed.store.noteTraffic({
      contexts: [
        { claim, tokens: 90 },
        { claim: { ...claim, attempt: 9 }, tokens: 1 },
      ],
      errors,
    });
    assert.deepEqual(await bed.store.backendLoads(), [{ id: 'a', inFlight: 1, tokens: 90 }]);
    assert.deepEqual((await bed.store.backends())[0]?.health, { error: 'status 500', errorAtMs: bed.clock.now() });
    assert.equal(await bed.store.lastEventId(), before);
  });
}

let workers = 0;

/** Submits rollouts and moves each to run, under a separate worker. */
async function runAll(store: Store, ids: readonly string[], changes: Record<string, unknown> = {}): Promise<readonly Claim[]> {
  await submitAll(store, ids, changes);
  const claims = await store.claim(await registerWorker(store, `w${workers++}`), ids.length);
  for (const claim of claims) await moveUpTo(store, claim, 'run');
  return claims;
}

async function loads(store: Store): Promise<Record<string, number>> {
  return Object.fromEntries((await store.backendLoads()).map(({ id, inFlight }) => [id, inFlight]));
}

async function join(store: Store, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await store.joinBackend(makeBackend(id));
}

function makeBackend(id: string) {
  return { id: toId(id), url: `http://${id}:8000`, dialect: 'vllm', policyVersion: 0, state: 'up' } as const;
}

function toId(id: string): BackendId {
  return backendId.parse(id);
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `r${index}`);
}
