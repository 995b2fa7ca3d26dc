// Batches on virtual time: the keeper and the store of the service, with a pipeline whose rollouts take as long as the world says.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BatchKeeper, openSqliteStore, type Scenario, type Store, silentLog, TaskFiles } from '@millrace/server';
import { FakeClock, makeBatch, SimulatedPipeline, toBatch } from '@millrace/testkit';
import { z } from 'zod';
import type { Cost } from './batch-baselines.ts';
import { courseOf, groupSize, type World } from './batch-worlds.ts';

export interface SimulationPlan {
  readonly target: number;
  /** One after the other; with a series, each takes over what the one before left. */
  readonly batches: number;
  readonly series: boolean;
}

const never = () => Promise.reject(new Error('no rollout is run'));
const math: Scenario = { name: 'math', task: z.object({ question: z.string() }), init: never, evaluate: never };
const scenarios = { get: () => math, names: () => ['math'] };
const streamLength = 20_000;

/** The cost of each batch. All draw from one stream, each where the one before stopped. */
export async function simulateBatches(world: World, plan: SimulationPlan): Promise<Cost[]> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  const clock = new FakeClock();
  const path = join(folder, 'tasks.jsonl');
  await writeFile(path, Array.from({ length: streamLength }, (_, n) => JSON.stringify({ question: `${n}` })).join('\n'));
  const store = await openSqliteStore({ path: join(folder, 'store.db'), clock });
  try {
    const course = ({ id, submission }: { readonly id: string; readonly submission: { readonly task: Record<string, unknown> } }) =>
      courseOf(world, Number(submission.task.question), Number(id.split(':').at(-1)) % groupSize);
    const pipeline = new SimulatedPipeline({ store, clock, slots: world.slots, course });
    await pipeline.start();
    const keeper = new BatchKeeper({ store, scenarios, files: new TaskFiles({ stream: path }), clock, log: silentLog });
    const costs: Omit<Cost, 'wastedSeconds'>[] = [];
    for (let index = 0; index < plan.batches; index += 1) costs.push(await runBatch({ store, clock, pipeline, keeper }, plan, index));
    // Known at the end only: what one batch left may have been taken over by the next.
    return await Promise.all(costs.map(async (cost, index) => ({ ...cost, wastedSeconds: await readWaste(store, index) })));
  } finally {
    await store[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  }
}

interface Bed {
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
  { store, clock, pipeline, keeper }: Bed,
  plan: SimulationPlan,
  index: number,
): Promise<Omit<Cost, 'wastedSeconds'>> {
  const id = toBatch(`b${index}`);
  const before = { ...pipeline.spent, ms: clock.now() };
  const source = { file: 'stream', cursor: 'stream' };
  await store.createBatch(
    makeBatch(id, { group_size: groupSize, target: plan.target, count: 0, source, ...(plan.series ? { series: 's' } : {}) }),
  );
  for (;;) {
    while (await keeper.look());
    await pipeline.stopCancelled();
    if ((await store.openBatches()).length === 0) break;
    await pipeline.claim();
    if (!(await pipeline.step())) throw new Error(`batch ${id} does not go on`);
  }
  const record = await store.batch(id);
  return {
    seconds: (clock.now() - before.ms) / 1000,
    rolloutSeconds: pipeline.spent.seconds - before.seconds,
    tokens: pipeline.spent.tokens - before.tokens,
    tasks: record?.tasks.begun ?? 0,
  };
}
