// Batches that fill on a real store and a clock of their own, with a keeper that may be killed in the middle of a look.

import { batchId } from '@millrace/protocol';
import { FakeClock, makeBatch, makeRandom, SimulatedPipeline, type SimulatedPipelineOptions } from '@millrace/testkit';
import { z } from 'zod';
import { silentLog } from '../../src/base/log.ts';
import { BatchKeeper } from '../../src/sampling/batch-keeper.ts';
import { TaskFiles } from '../../src/sampling/task-files.ts';
import type { Scenario } from '../../src/scenario/scenario.ts';
import type { Store } from '../../src/store/store.ts';
import { openSqliteBed } from '../store/sqlite/bed.ts';

const never = () => Promise.reject(new Error('no test runs a scenario'));
const math: Scenario = { name: 'math', task: z.strictObject({ question: z.string(), answer: z.string() }), init: never, evaluate: never };
export const scenarios = { get: (name: string) => (name === 'math' ? math : undefined), names: () => ['math'] };

export interface BatchBed extends AsyncDisposable {
  readonly store: Store;
  readonly clock: FakeClock;
  readonly pipeline: SimulatedPipeline;
  begin(id: string, fields?: Parameters<typeof makeBatch>[1]): Promise<void>;
  /** Runs until the batch is over, and answers it. `mayDie`: the keeper is killed before so large a share of its writes. */
  fill(id: string, options?: { readonly mayDie?: number; readonly seed?: number }): Promise<Awaited<ReturnType<Store['batch']>>>;
  /** Runs until nothing changes and nothing runs. */
  settle(): Promise<void>;
  look(): Promise<boolean>;
}

export type BedOptions = Omit<SimulatedPipelineOptions, 'store' | 'clock'> & { readonly files?: Record<string, string> };

export async function openBatchBed(options: BedOptions): Promise<BatchBed> {
  const clock = new FakeClock();
  const bed = await openSqliteBed(clock);
  const { store } = bed;
  const pipeline = new SimulatedPipeline({ ...options, store, clock });
  await pipeline.start();
  const open = (on: Store) => new BatchKeeper({ store: on, scenarios, files: new TaskFiles(options.files ?? {}), clock, log: silentLog });
  const keep = async (on: Store = store) => {
    const keeper = open(on);
    while (await keeper.look());
  };
  const advance = async () => {
    await pipeline.stopCancelled();
    await pipeline.claim();
    return pipeline.step();
  };
  return {
    store,
    clock,
    pipeline,
    look: () => open(store).look(),
    async begin(id, fields = {}) {
      await store.createBatch(makeBatch(id, fields));
    },
    async fill(id, { mayDie = 0, seed = 1 } = {}) {
      const random = makeRandom(seed);
      for (let idle = 0; ; ) {
        await keep(mayDie === 0 ? store : mortal(store, () => random() < mayDie));
        const record = await store.batch(batchId.parse(id));
        if (record?.state !== 'open') return record;
        idle = (await advance()) ? 0 : idle + 1;
        if (idle > 20) throw new Error(`batch ${id} does not go on: ${JSON.stringify(record)}`);
      }
    },
    async settle() {
      do await keep();
      while (await advance());
    },
    [Symbol.asyncDispose]: () => bed[Symbol.asyncDispose](),
  };
}

const decisions = new Set(['beginGroup', 'takeGroup', 'renewGroup', 'replaceSiblings', 'settleGroup', 'endBatch']);

/** A store whose user dies before a write, and then writes nothing any more. */
function mortal(store: Store, dies: () => boolean): Store {
  let dead = false;
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        dead ||= decisions.has(String(name)) && dies();
        return dead && decisions.has(String(name)) ? Promise.reject(new Error('killed')) : value.apply(target, args);
      };
    },
  });
}
