// Batches on virtual time: the service's keeper and store, with a pipeline whose rollouts take as long as the world specifies.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLog } from '@millrace/base/log';
import { definedOf } from '@millrace/protocol';
import type { Scenario } from '@millrace/scenarios';
import { BatchKeeper, TaskFiles } from '@millrace/server';
import { openSqliteStore, type Store } from '@millrace/store';
import { FakeClock, makeBatch, makeTempFolder, SimulatedPipeline, toBatch } from '@millrace/testkit';
import { z } from 'zod';
import type { Cost } from './batch-baselines.ts';
import { courseOf, groupSize, type World } from './batch-worlds.ts';

interface SimulationPlan {
  readonly target: number;
  /** One after another; in a series, each carries over the surplus of the one before. */
  readonly batches: number;
  readonly series: boolean;
}

const never = () => Promise.reject(new Error('no rollout is run'));
const math: Scenario = { name: 'math', task: z.object({ question: z.string() }), init: never, evaluate: never };
const scenarios = { get: () => math, names: () => ['math'] };
const streamLength = 20_000;

/** The cost of each batch. All draw from one stream, each continuing where the one before stopped. */
export async function simulateBatches(world: World, plan: SimulationPlan): Promise<Cost[]> {
  await using folder = await makeTempFolder('millrace-bench');
  const clock = new FakeClock();
  const path = join(folder.path, 'tasks.jsonl');
  await writeFile(path, Array.from({ length: streamLength }, (_, n) => JSON.stringify({ question: `${n}` })).join('\n'));
  await using store = await openSqliteStore({ path: join(folder.path, 'store.db'), clock, log: silentLog });
  const course = ({ id, submission }: { readonly id: string; readonly submission: { readonly task: Record<string, unknown> } }) =>
    courseOf(world, Number(submission.task.question), Number(id.split(':').at(-1)) % groupSize);
  const pipeline = new SimulatedPipeline({ store, clock, slots: world.slots, course });
  await pipeline.start();
  const keeper = new BatchKeeper({ store, scenarios, files: new TaskFiles({ stream: path }), clock, log: silentLog });
  const costs: Omit<Cost, 'wastedSeconds'>[] = [];
  for (let index = 0; index < plan.batches; index += 1) costs.push(await runBatch({ store, clock, pipeline, keeper }, plan, index));
  // Known only at the end: the surplus of one batch may have been carried over by the next.
  return await Promise.all(costs.map(async (cost, index) => ({ ...cost, wastedSeconds: await readWaste(store, index) })));
}

interface SimulationBed {
  readonly store: Store;
  readonly clock: FakeClock;
  readonly pipeline: SimulatedPipeline;
  readonly keeper: BatchKeeper;
}

async function readWaste(store: Store, index: number): Promise<number> {
  const record = await store.batch(toBatch(`b${index}`));
  return Object.values(record?.wasted ?? {}).reduce((total, { seconds }) => total + seconds, 0);
}

async function runBatch(
  { store, clock, pipeline, keeper }: SimulationBed,
  plan: SimulationPlan,
  index: number,
): Promise<Omit<Cost, 'wastedSeconds'>> {
  const id = toBatch(`b${index}`);
  const before = { ...pipeline.spent, ms: clock.now() };
  const source = { file: 'stream', cursor: 'stream' };
  await store.createBatch(
    makeBatch(id, {
      group_size: groupSize,
      target: plan.target,
      count: 0,
      source,
      ...definedOf({ series: plan.series ? 's' : undefined }),
    }),
  );
  for (;;) {
    while (await keeper.advance());
    await pipeline.stopCancelled();
    if ((await store.openBatches()).length === 0) break;
    await pipeline.claim();
    if (!(await pipeline.step())) throw new Error(`batch ${id} is stuck`);
  }
  const record = await store.batch(id);
  return {
    seconds: (clock.now() - before.ms) / 1000,
    rolloutSeconds: pipeline.spent.seconds - before.seconds,
    tokens: pipeline.spent.tokens - before.tokens,
    tasks: record?.tasks.begun ?? 0,
  };
}
