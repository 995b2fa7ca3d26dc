// The store's promises about rollouts that take their workers along while they are judged: they are judged alone, and the third death is
// their policy's fault.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClaimedRollout } from '@millrace/store';
import {
  leaseMs,
  makeFailure,
  makeReport,
  makeResult,
  makeTrajectory,
  moveUpTo,
  type OpenBed,
  openTimedBed,
  registerWorker,
  submitAll,
  type TimedBed,
} from '../bed/bed.ts';

const rules = { maxLosses: 10, retryDelayMs: 1000 };

export function defineVerdictTests(openBed: OpenBed): void {
  const losses: Record<string, (bed: TimedBed, claim: ClaimedRollout) => Promise<unknown>> = {
    drop: ({ store }, { worker }) => store.dropWorker(worker, rules),
    'end of its lease': async ({ store, clock }) => {
      clock.advance(leaseMs + 1);
      await store.expire({ ...rules, leaseMs });
    },
  };
  for (const [how, lose] of Object.entries(losses)) {
    test(`a rollout that takes a third worker in evaluate, alone on it, is done by its policy's fault: ${how}`, async () => {
      await using bed = await openTimedBed(openBed);
      const claim = await judgeApart(bed, 'a');
      await lose(bed, claim);
      const record = await bed.store.get(claim.id);
      assert.deepEqual([record?.state, record?.result, record?.losses, record?.attempt], ['done', makeResult(-1), 3, 3]);
      const { message, ...failure } = record?.failure ?? {};
      assert.deepEqual(failure, { code: 'policy-failed', blame: 'policy', retryable: false, stage: 'evaluate', attempt: 3 });
      assert.match(
        message ?? '',
        /took 3 workers, .* judged an agent that did nothing: worker next-a .* was lost while rollout a was in evaluate/,
      );
      assert.deepEqual(
        record?.failures.map(({ code, stage }) => [code, stage]),
        Array(2).fill(['worker-lost', 'evaluate']),
      );
      assert.deepEqual(await bed.store.trajectory(claim.id), makeTrajectory('a', 3));
      const { events } = await bed.store.events(0, { limit: 99, kinds: ['rollout-end'] });
      assert.deepEqual(
        events.map(({ data }) => [data.state, data.reward, data.code, data.blame]),
        [['done', -1, 'policy-failed', 'policy']],
      );
      assert.equal(await bed.store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory('a', 3) }), false);
    });
  }

  for (const [name, write] of Object.entries(otherWrites)) {
    test(`what a rollout gets if it is lost is over after another write: ${name}`, async () => {
      await using bed = await openTimedBed(openBed);
      await write(bed, await judgeApart(bed, 'a'));
      bed.clock.advance(60_000);
      const next = await registerWorker(bed.store, 'another');
      const [again] = await bed.store.claim(next, 9);
      assert.ok(again?.isJudgedApart && again.attempt === 4);
      await moveUpTo(bed.store, again, 'evaluate');
      await bed.store.dropWorker(next, rules);
      const record = await bed.store.get(again.id);
      assert.deepEqual([record?.result, record?.failures.at(-1)?.code], [undefined, 'worker-lost']);
      assert.equal(await bed.store.trajectory(again.id), undefined);
    });
  }

  test('a rollout that is judged apart has the verdict of its verifier, or is cancelled', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const judged = await judgeApart(bed, 'judged');
    const other = { ...makeTrajectory('judged', 3), model: 'another' };
    await store.endIfLost(judged, { result: makeResult(-2), trajectory: other });
    assert.equal(await store.finish(judged, { state: 'done', result: makeResult(1), trajectory: makeTrajectory('judged', 3) }), true);
    assert.deepEqual((await store.get(judged.id))?.result, makeResult(1));
    assert.deepEqual(await store.trajectory(judged.id), makeTrajectory('judged', 3));
    await store.dropWorker(judged.worker, rules);
    const cancelled = await judgeApart(bed, 'cancelled');
    await store.cancel(cancelled.id, { tombstoneMs: 1 });
    await store.dropWorker(cancelled.worker, rules);
    const record = await store.get(cancelled.id);
    assert.deepEqual([record?.state, record?.result, await store.trajectory(cancelled.id)], ['cancelled', undefined, undefined]);
  });

  test('the newest of two is what a rollout gets if it is lost, and a worker that lost it writes none', async () => {
    await using bed = await openTimedBed(openBed);
    const claim = await judgeApart(bed, 'a');
    const trajectory = { ...makeTrajectory('a', 3), model: 'another' };
    assert.equal(await bed.store.endIfLost(claim, { result: makeResult(-2), trajectory }), true);
    const stranger = { ...claim, attempt: 2 };
    assert.equal(await bed.store.endIfLost(stranger, { result: makeResult(-3), trajectory: makeTrajectory('a', 2) }), false);
    await bed.store.dropWorker(claim.worker, rules);
    assert.deepEqual((await bed.store.get(claim.id))?.result, makeResult(-2));
    assert.deepEqual(await bed.store.trajectory(claim.id), trajectory);
  });

  test('only workers that died in evaluate count: those lost in other stages, or that left, prove nothing', async () => {
    await using bed = await openTimedBed(openBed);
    const cases: [string, readonly LostStage[], boolean, boolean][] = [
      ['run', ['run', 'run', 'evaluate'], false, false],
      ['left', ['evaluate', 'evaluate'], true, false],
      ['mixed', ['evaluate', 'init', 'evaluate'], false, true],
    ];
    for (const [id, stages, isLeaving, isApart] of cases) {
      const claim = await claimAfter(bed, id, stages, isLeaving);
      assert.equal(claim.isJudgedApart, isApart, id);
      const ending = { result: makeResult(-1), trajectory: makeTrajectory(id, claim.attempt) };
      await assert.rejects(bed.store.endIfLost(claim, ending), { code: 'internal', message: /in init is not judged apart/ });
      await bed.store.finish(claim, { state: 'cancelled' });
      await bed.store.dropWorker(claim.worker, rules);
    }
  });

  test('a rollout that lost workers elsewhere before is judged apart too, and is given up if that proves nothing', async () => {
    await using bed = await openTimedBed(openBed);
    const claim = await claimAfter(bed, 'a', ['run', 'init', 'run', 'evaluate', 'evaluate']);
    assert.deepEqual([claim.isJudgedApart, claim.attempt], [true, 6]);
    await moveUpTo(bed.store, claim, 'evaluate');
    await bed.store.dropWorker(claim.worker, rules);
    const record = await bed.store.get(claim.id);
    assert.deepEqual([record?.state, record?.failure?.code, record?.failure?.stage], ['failed', 'worker-lost', 'evaluate']);
  });

  test('after two losses in evaluate a rollout runs alone, and those that were in other stages still run together', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    await submitAll(store, ['n1', 'judged', 'n2']);
    for (const round of [1, 2]) {
      const worker = await registerWorker(store, `lost-${round}`);
      const claims = await store.claim(worker, 9);
      assert.equal(claims.length, 3);
      for (const claim of claims) await moveUpTo(store, claim, claim.id === 'judged' ? 'evaluate' : 'run');
      await store.dropWorker(worker, rules);
      bed.clock.advance(60_000);
    }
    const worker = await registerWorker(store, 'w');
    const taken: string[][] = [];
    for (let claims = await store.claim(worker, 9); claims.length > 0; claims = await store.claim(worker, 9)) {
      taken.push(claims.map(({ id, isJudgedApart }) => `${id}${isJudgedApart ? ' apart' : ''}`));
      assert.deepEqual(await store.claim(worker, 9), []);
      for (const claim of claims) await store.finish(claim, { state: 'cancelled' });
    }
    assert.deepEqual(taken, [['n1', 'n2'], ['judged apart']]);
  });
}

type LostStage = Parameters<typeof moveUpTo>[2];

/** Loses a worker of the rollout in each of these stages, and claims it again. */
async function claimAfter(bed: TimedBed, id: string, stages: readonly LostStage[], isLeaving = false): Promise<ClaimedRollout> {
  await submitAll(bed.store, [id]);
  for (const [index, stage] of stages.entries()) {
    const worker = await registerWorker(bed.store, `lost-${id}-${index}`);
    const [claim] = await bed.store.claim(worker, 1);
    assert.equal(claim?.id, id);
    if (claim) await moveUpTo(bed.store, claim, stage);
    if (isLeaving) await reportLeaving(bed, worker);
    await bed.store.dropWorker(worker, rules);
    bed.clock.advance(60_000);
  }
  const [claim] = await bed.store.claim(await registerWorker(bed.store, `next-${id}`), 1);
  assert.ok(claim?.id === id);
  return claim;
}

async function reportLeaving({ store }: TimedBed, worker: ClaimedRollout['worker']): Promise<void> {
  await store.renew(worker, { leaseMs, report: { ...makeReport(1), draining: true } });
}

/** Third attempt, in evaluate, with the lowest reward if its worker is lost now. */
async function judgeApart(bed: TimedBed, id: string): Promise<ClaimedRollout> {
  const claim = await claimAfter(bed, id, ['evaluate', 'evaluate']);
  assert.equal(claim.isJudgedApart, true);
  await moveUpTo(bed.store, claim, 'evaluate');
  assert.equal(await bed.store.endIfLost(claim, { result: makeResult(-1), trajectory: makeTrajectory(id, 3) }), true);
  return claim;
}

/** Writes after which a loss is not the policy's fault. */
const otherWrites: Readonly<Record<string, (bed: TimedBed, claim: ClaimedRollout) => Promise<unknown>>> = {
  retry: ({ store }, claim) => store.retry(claim, makeFailure('sandbox-failed', 3), { delayMs: 0 }),
  release: ({ store }, claim) => store.release(claim),
  'its worker leaves': async (bed, { worker }) => {
    await reportLeaving(bed, worker);
    await bed.store.dropWorker(worker, rules);
  },
  'its worker does not name it': ({ store }, { worker }) =>
    store.renew(worker, { leaseMs, report: makeReport(1), held: { claims: [], ...rules } }),
};
