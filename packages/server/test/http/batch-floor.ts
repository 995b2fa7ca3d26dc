// The HTTP floor with a batch, a keeper that the test runs, and siblings that end when the test says so.

import assert from 'node:assert/strict';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import type { Trajectory } from '@millrace/protocol';
import { BatchKeeper } from '../../src/batches/batch-keeper.ts';
import { TaskFiles } from '../../src/batches/task-files.ts';
import { type Floor, makeResult, makeTrajectory, openFloor, task } from './floor.ts';

const tasks = Array.from({ length: 8 }, () => task);
export const batch = { id: 'b', scenario: 'sums', group_size: 2, target: 2, tasks };

export async function keep(floor: Floor): Promise<void> {
  const scenarios = { get: () => undefined, names: () => [] };
  const keeper = new BatchKeeper({ store: floor.store, scenarios, files: new TaskFiles({}), clock: systemClock, log: silentLog });
  while (await keeper.advance());
}

/** Ends every rollout until none is queued; one rollout of each group gets reward 1. */
export async function finishQueued(floor: Floor, make: (id: string) => Trajectory = makeTrajectory): Promise<void> {
  if ((await finishClaims(floor, 1000, make)) > 0) await finishQueued(floor, make);
}

/** Claims up to `limit` rollouts and ends them: the first of each group earns the reward. */
export async function finishClaims(floor: Floor, limit: number, make: (id: string) => Trajectory = makeTrajectory): Promise<number> {
  const claims = await floor.store.claim(floor.worker.id, limit);
  for (const claim of claims)
    await floor.worker.finish(claim, {
      state: 'done',
      result: makeResult({ reward: Number(claim.id.endsWith(':0')) }),
      trajectory: make(claim.id),
    });
  await keep(floor);
  return claims.length;
}

export async function openBatchFloor(fields: Record<string, unknown> = {}, options: Parameters<typeof openFloor>[0] = {}): Promise<Floor> {
  const floor = await openFloor(options);
  await floor.worker.register();
  const made = await floor.call('POST', '/v1/batches', { ...batch, ...fields });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  await keep(floor);
  return floor;
}
