// The end of an attempt reaches the store, even if the store fails for a while or the scenario returns what cannot be stored.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { type Log, silentLog } from '@millrace/base/log';
import { RolloutError } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import type { Scenario, Score } from '@millrace/scenarios';
import type { Store } from '@millrace/store';
import { mountSmallDisk, smallDiskSkip } from '@millrace/testkit';
import { z } from 'zod';
import { WorkerBed } from './worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

function makeScenario(evaluate: () => Score | Promise<Score>, tools: readonly unknown[] = ['finish']): Scenario {
  return {
    name: 'own',
    task: z.unknown(),
    init: () => ({ messages: [{ role: 'user', content: 'go' }], tools: tools as ['finish'] }),
    evaluate,
  };
}

const own = (id: string) => ({ id, scenario: 'own', task: {} });

/** Resolves once the event was logged `count` times. */
function countEvents(event: string, count: number): { readonly log: Log; readonly seen: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = count;
  const note = (name: string) => {
    if (name === event && --left === 0) resolve();
  };
  return { log: { ...silentLog, warn: note, error: note }, seen: promise };
}

describe('the end of an attempt', { skip, timeout: 180_000 }, () => {
  test('twenty rollouts that end while the disk is full are saved once there is space', { skip: smallDiskSkip }, async () => {
    await using disk = await mountSmallDisk();
    const gate = Promise.withResolvers<void>();
    const scenario = makeScenario(async () => {
      await gate.promise;
      return { reward: 1 };
    });
    const { log, seen } = countEvents('rollout-save-failed', 20);
    const pipeline = { evaluateSlots: 20, leaseMs: 2000 };
    await using bed = await WorkerBed.open({ scenarios: [scenario], storeFolder: disk.path, log, pipeline });
    const worker = await bed.startWorker();
    const ids = await bed.submitAll(...Array.from({ length: 20 }, (_, index) => own(`full-${index}`)));
    await Promise.all(ids.map((id) => bed.reach(id, 'evaluate')));
    disk.fill();
    gate.resolve();
    await seen;
    assert.equal(worker.report().held, 20, 'it holds what is not saved');
    disk.free();
    const records = await Promise.all(ids.map((id) => bed.ended(id)));
    for (const { id, state, attempt, losses, retries } of records) {
      assert.deepEqual([id, state, attempt, losses, retries], [id, 'done', 1, 0, 0]);
      assert.ok(await bed.store.trajectory(id));
    }
  });

  const scores: [string, unknown, RegExp][] = [
    ['a BigInt', { reward: 1, details: { passed: { count: 3n } } }, /details\.passed\.count is a bigint/],
    ['a function', { reward: 1, details: { log: () => {} } }, /details\.log is a function/],
    ['a circle', { reward: 1, details: makeCircle() }, /circular/],
  ];
  for (const [what, score, message] of scores) {
    test(`a score that holds ${what} fails as evaluate-failed, and is blamed on the verifier`, async () => {
      await using bed = await WorkerBed.open({ scenarios: [makeScenario(() => score as Score)] });
      await bed.startWorker();
      const { state, failure, result } = await bed.ended(await bed.submit(own('odd')));
      assert.deepEqual([state, failure?.code, failure?.blame, result?.reward], ['failed', 'evaluate-failed', 'verifier', null]);
      assert.match(failure?.message ?? '', message);
    });
  }

  test('details are stored as JSON shows them', async () => {
    const details = { at: new Date(0), none: undefined, list: [1, undefined] };
    await using bed = await WorkerBed.open({ scenarios: [makeScenario(() => ({ reward: 0.5, details }))] });
    await bed.startWorker();
    const { result } = await bed.ended(await bed.submit(own('plain')));
    assert.deepEqual([result?.reward, result?.score], [0.5, { at: '1970-01-01T00:00:00.000Z', list: [1, null] }]);
  });

  test('an end that the store can never save ends as failed, without the trajectory', async () => {
    await using bed = await WorkerBed.open({
      scenarios: [makeScenario(() => ({ reward: 1 }))],
      wrapStore: (store) => ({
        finish: (claim, ending) => ('trajectory' in ending ? Promise.reject(new TypeError('not a token id')) : store.finish(claim, ending)),
      }),
    });
    await bed.startWorker();
    const id = await bed.submit(own('unsavable'));
    const { state, failure } = await bed.ended(id);
    assert.deepEqual([state, failure?.code, failure?.stage], ['failed', 'internal', 'evaluate']);
    assert.match(failure?.message ?? '', /the end could not be stored: not a token id/);
    assert.equal(await bed.store.trajectory(id), undefined);
  });

  test('a rollout whose claim never reached its worker goes back to the queue', async () => {
    let claims = 0;
    await using bed = await WorkerBed.open({
      scenarios: [makeScenario(() => ({ reward: 1 }))],
      wrapStore: (store) => ({
        async claim(worker, limit) {
          const claimed = await store.claim(worker, limit);
          if (claimed.length > 0 && claims++ === 0) throw new Error('the reply was lost');
          return claimed;
        },
      }),
    });
    await bed.startWorker();
    const { state, attempt, losses } = await bed.ended(await bed.submit(own('unheld')));
    assert.deepEqual([state, attempt, losses], ['done', 2, 1]);
  });

  test('a rollout that is claimed again before its last attempt has ended stays held', async () => {
    let evaluations = 0;
    const scenario = makeScenario(async () => {
      if (evaluations++ === 0) throw new RolloutError('backend-failed', 'it failed');
      await setTimeout(2500); // longer than the pause between two renewals
      return { reward: 1 };
    });
    const wrapStore = (store: Store): Partial<Store> => ({
      async retry(claim, failure, options) {
        const isHeld = await store.retry(claim, failure, options);
        while ((await store.get(claim.id))?.state !== 'evaluate') await setTimeout(20);
        return isHeld;
      },
    });
    await using bed = await WorkerBed.open({ scenarios: [scenario], wrapStore });
    await bed.startWorker();
    const { state, attempt, retries, losses } = await bed.ended(await bed.submit(own('again')));
    assert.deepEqual([state, attempt, retries, losses], ['done', 2, 1, 0]);
  });

  test('a worker closes while the disk is full, and another finishes its rollouts', { skip: smallDiskSkip }, async () => {
    await using disk = await mountSmallDisk();
    const gate = Promise.withResolvers<void>();
    const scenario = makeScenario(async () => {
      await gate.promise;
      return { reward: 1 };
    });
    const { log, seen } = countEvents('rollout-save-failed', 1);
    await using bed = await WorkerBed.open({ scenarios: [scenario], storeFolder: disk.path, log, pipeline: { leaseMs: 1000 } });
    const first = await bed.startWorker();
    const id = await bed.submit(own('closing'));
    await bed.reach(id, 'evaluate');
    disk.fill();
    gate.resolve();
    await seen;
    await assert.rejects(async () => first[Symbol.asyncDispose](), /SQLITE_FULL|SQLITE_IOERR/);
    disk.free();
    await bed.startWorker();
    const { state, attempt, losses } = await bed.ended(id);
    assert.deepEqual([state, attempt, losses], ['done', 2, 1]);
  });
});

function makeCircle(): Record<string, unknown> {
  const circle: Record<string, unknown> = {};
  circle.itself = circle;
  return circle;
}
