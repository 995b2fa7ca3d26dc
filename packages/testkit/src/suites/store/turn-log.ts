// The contract suite: the log of a running rollout's turns. It survives its worker, only the attempt that holds the rollout writes it, and
// it is gone when the rollout ends.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ForkOrigin, WorkerId } from '@millrace/protocol';
import type { ClaimedRollout, Store, TurnAppend } from '@millrace/store';
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

function toAppend({ id, attempt }: Pick<ClaimedRollout, 'id' | 'attempt'>, turns: readonly number[], after?: number): TurnAppend {
  const bodies = turns.map((turn) => ({ turn, body: Buffer.from(`${attempt}:${turn}`) }));
  return { id, attempt, turns: bodies, ...(after === undefined ? {} : { after }) };
}

async function readTurns(store: Store, claim: ClaimedRollout): Promise<string[]> {
  const turns = await store.loggedTurns(claim);
  return turns.map(({ turn, attempt, body }) => `${turn} ${attempt} ${Buffer.from(body).toString()}`);
}

async function claimAgain(store: Store, worker: WorkerId): Promise<ClaimedRollout> {
  const [claim] = await store.claim(worker, 1);
  return claim ?? assert.fail('there is nothing to claim');
}

async function submitFork(store: Store, id: string, fork: ForkOrigin): Promise<void> {
  const { submission, ...rest } = makeRollout(id);
  await store.submit([{ ...rest, submission: { ...submission, fork } }], roomy);
}

/** A rollout in `run`. */
async function runOne(store: Store, id: string, worker: WorkerId): Promise<ClaimedRollout> {
  const claim = await claimOne(store, { id, worker });
  await moveUpTo(store, claim, 'run');
  return claim;
}

export function defineTurnLogTests(openBed: OpenBed): void {
  describe('the turn log', () => {
    test('is read by the next attempt, in order, whatever ended the one before', async () => {
      await using bed = await openTimedBed(openBed);
      const { store } = bed;
      const first = await registerWorker(store, 'w1');
      const claim = await runOne(store, 'a', first);
      assert.deepEqual(await store.appendTurns(first, [toAppend(claim, [1, 2], 0)]), [claim.id]);
      assert.deepEqual(await store.appendTurns(first, [toAppend(claim, [3])]), [claim.id]);
      await store.dropWorker(first, { maxLosses });
      const second = await registerWorker(store, 'w2');
      const lost = await claimAgain(store, second);
      assert.deepEqual(await readTurns(store, lost), ['1 1 1:1', '2 1 1:2', '3 1 1:3']);
      await store.release(lost);
      const released = await claimAgain(store, second);
      assert.equal((await readTurns(store, released)).length, 3);
      await store.retry(released, makeFailure('sandbox-died', released.attempt), { delayMs: 0 });
      const retried = await claimAgain(store, second);
      assert.equal((await readTurns(store, retried)).length, 3);
      await store.retry(retried, makeFailure('too-stale', retried.attempt), { delayMs: 0 });
      assert.deepEqual(await readTurns(store, await claimAgain(store, second)), [], 'what is in the turns may be the cause');
    });

    test('an attempt that continued replaces the turns after it, and one that began again all of them', async () => {
      await using bed = await openTimedBed(openBed);
      const { store } = bed;
      const worker = await registerWorker(store, 'w');
      let claim = await runOne(store, 'a', worker);
      await store.appendTurns(worker, [toAppend(claim, [1, 2, 3, 4], 0)]);
      await store.release(claim);
      claim = await claimAgain(store, worker);
      await moveUpTo(store, claim, 'run');
      await store.appendTurns(worker, [toAppend(claim, [3], 2)]);
      await store.appendTurns(worker, [toAppend(claim, [3], 2)]); // its reply was lost
      await store.appendTurns(worker, [toAppend(claim, [4])]);
      assert.deepEqual(await readTurns(store, claim), ['1 1 1:1', '2 1 1:2', '3 2 2:3', '4 2 2:4']);
      await store.release(claim);
      claim = await claimAgain(store, worker);
      await moveUpTo(store, claim, 'run');
      await store.appendTurns(worker, [toAppend(claim, [1], 0)]);
      assert.deepEqual(await readTurns(store, claim), ['1 3 3:1']);
    });

    test('takes nothing from a worker that was given up, an attempt that is over, or a rollout in another stage', async () => {
      await using bed = await openTimedBed(openBed);
      const { store, clock } = bed;
      const old = await registerWorker(store, 'old');
      const stale = await runOne(store, 'a', old);
      await store.appendTurns(old, [toAppend(stale, [1], 0)]);
      clock.advance(leaseMs + 1);
      await store.expire({ leaseMs, maxLosses });
      assert.deepEqual(await store.appendTurns(old, [toAppend(stale, [2])]), []);
      const next = await registerWorker(store, 'next');
      const claim = await claimAgain(store, next);
      assert.deepEqual(await store.appendTurns(next, [toAppend(claim, [2])]), [], 'it does not run yet');
      await moveUpTo(store, claim, 'run');
      assert.deepEqual(await store.appendTurns(next, [toAppend({ ...claim, attempt: 1 }, [2])]), []);
      assert.deepEqual(await store.appendTurns(old, [toAppend(claim, [2])]), []);
      assert.deepEqual(await readTurns(store, claim), ['1 1 1:1']);
      assert.deepEqual(await readTurns(store, { ...claim, attempt: 1 }), [], 'an outdated claim reads nothing');
      await store.move(claim, 'evaluate');
      assert.deepEqual(await store.appendTurns(next, [toAppend(claim, [2])]), []);
    });

    test('one append takes the turns of many rollouts, and those that are not held do not matter', async () => {
      await using bed = await openTimedBed(openBed);
      const { store } = bed;
      const worker = await registerWorker(store, 'w');
      const claims: ClaimedRollout[] = [];
      for (const id of ['a', 'b', 'c']) claims.push(await runOne(store, id, worker));
      const appends = [...claims.map((claim) => toAppend(claim, [1], 0)), toAppend({ id: makeId('none'), attempt: 1 }, [1], 0)];
      assert.deepEqual([...(await store.appendTurns(worker, appends))].sort(), ['a', 'b', 'c']);
      for (const claim of claims) assert.deepEqual(await readTurns(store, claim), ['1 1 1:1']);
    });

    test('shows that a lost worker is not the fault of a long rollout, but that many are', async () => {
      await using bed = await openTimedBed(openBed);
      const { store } = bed;
      const seen: number[] = [];
      await submitAll(store, ['a']);
      for (const through of [20, 20, 20, 40, 40]) {
        const worker = await registerWorker(store, `w${seen.length}`);
        const claim = await claimAgain(store, worker);
        await moveUpTo(store, claim, 'run');
        await store.appendTurns(worker, [toAppend(claim, [through])]);
        await store.dropWorker(worker, { maxLosses: 3 });
        seen.push((await store.get(claim.id))?.losses ?? Number.NaN);
      }
      assert.deepEqual(seen, [0, 0, 1, 1, 2]);
    });

    test('is kept where the end says so, and a fork begins with the turns that it shares, whatever becomes of its own', async () => {
      await using bed = await openTimedBed(openBed);
      const { store } = bed;
      const worker = await registerWorker(store, 'w');
      const root = await runOne(store, 'root', worker);
      await store.appendTurns(worker, [toAppend(root, [1, 2, 3], 0)]);
      await submitFork(store, 'early', { rollout: root.id, turn: 3 });
      await store.move(root, 'evaluate');
      await store.finish(root, { state: 'failed', failure: makeFailure('internal', 1), result: makeResult(null), keepsTurns: true });
      assert.equal((await store.savedTurns(root.id)).length, 3);
      await submitFork(store, 'late', { rollout: root.id, turn: 2 });
      await assert.rejects(submitFork(store, 'wrong', { rollout: root.id, turn: 4 }), { code: 'conflict' });
      assert.equal(await store.get(makeId('wrong')), undefined);
      assert.equal(await store.cancel(makeId('early'), { tombstoneMs: 1000 }), 'cancelled');
      assert.deepEqual(await store.savedTurns(makeId('early')), []);
      let fork = await claimAgain(store, worker);
      assert.deepEqual(fork.submission.fork, { rollout: 'root', turn: 2 });
      assert.deepEqual(await readTurns(store, fork), ['1 0 1:1', '2 0 1:2']);
      await moveUpTo(store, fork, 'run');
      await store.appendTurns(worker, [toAppend(fork, [3], 2)]);
      await store.retry(fork, makeFailure('too-stale', 1), { delayMs: 0 });
      fork = await claimAgain(store, worker);
      assert.deepEqual(await readTurns(store, fork), ['1 0 1:1', '2 0 1:2'], 'without them it could not begin');
      await moveUpTo(store, fork, 'evaluate');
      await store.finish(fork, { state: 'failed', failure: makeFailure('internal', 2) });
      assert.deepEqual(await store.savedTurns(fork.id), []);
      const read = await runOne(store, 'read', worker);
      await store.appendTurns(worker, [toAppend(read, [1], 0)]);
      await store.move(read, 'evaluate');
      await store.finish(read, {
        state: 'done',
        result: makeResult(1),
        trajectory: makeTrajectory('read', read.attempt),
        keepsTurns: true,
      });
      bed.clock.advance(1000);
      await store.retain({ endedMs: 100_000, eventsMs: 100_000, textMs: 10 });
      assert.deepEqual(await store.savedTurns(read.id), [], 'they have its text');
    });

    test('is gone when the rollout has ended, and is no obstacle to its cancel', async () => {
      await using bed = await openTimedBed(openBed);
      const { store } = bed;
      const worker = await registerWorker(store, 'w');
      const claim = await runOne(store, 'a', worker);
      await store.appendTurns(worker, [toAppend(claim, [1], 0)]);
      await store.move(claim, 'evaluate');
      assert.equal((await readTurns(store, claim)).length, 1, 'a loss in evaluate continues too');
      await store.finish(claim, { state: 'failed', failure: makeFailure('internal', 1), result: makeResult(null) });
      assert.deepEqual(await readTurns(store, claim), []);
      const queued = await runOne(store, 'b', worker);
      await store.appendTurns(worker, [toAppend(queued, [1], 0)]);
      await store.release(queued);
      assert.equal(await store.cancel(queued.id, { tombstoneMs: 1000 }), 'cancelled');
    });
  });
}
