// Batches on a real store and a simulated clock, with a keeper that may crash in the middle of a round.

import { silentLog } from '@millrace/base/log';
import { batchId } from '@millrace/protocol';
import type { Scenario } from '@millrace/scenarios';
import type { Store } from '@millrace/store';
import { FakeClock, makeBatch, makeRandom, SimulatedPipeline, type SimulatedPipelineOptions } from '@millrace/testkit';
import { z } from 'zod';
import { openSqliteBed } from '../../../store/test/sqlite/bed.ts';
import { BatchKeeper } from '../../src/batches/batch-keeper.ts';
import { TaskFiles } from '../../src/batches/task-files.ts';

const never = () => Promise.reject(new Error('no test runs a scenario'));
const math: Scenario = { name: 'math', task: z.strictObject({ question: z.string(), answer: z.string() }), init: never, evaluate: never };
export const scenarios = { get: (name: string) => (name === 'math' ? math : undefined), names: () => ['math'] };

export interface BatchBed extends AsyncDisposable {
  readonly store: Store;
  readonly clock: FakeClock;
  readonly pipeline: SimulatedPipeline;
  begin(id: string, fields?: Parameters<typeof makeBatch>[1]): Promise<void>;
  /** Runs until the batch ends, and returns it. `mayDie`: the probability that the keeper crashes before a write. */
  fill(id: string, options?: { readonly mayDie?: number; readonly seed?: number }): Promise<Awaited<ReturnType<Store['batch']>>>;
  /** Runs until nothing changes and nothing runs. */
  settle(): Promise<void>;
  advance(): Promise<boolean>;
}

export type BatchBedOptions = Omit<SimulatedPipelineOptions, 'store' | 'clock'> & { readonly files?: Record<string, string> };

export async function openBatchBed(options: BatchBedOptions): Promise<BatchBed> {
  const clock = new FakeClock();
  const bed = await openSqliteBed(clock);
  const { store } = bed;
  const pipeline = new SimulatedPipeline({ ...options, store, clock });
  await pipeline.start();
  const open = (on: Store) => new BatchKeeper({ store: on, scenarios, files: new TaskFiles(options.files ?? {}), clock, log: silentLog });
  const keep = async (on: Store = store) => {
    const keeper = open(on);
    while (await keeper.advance());
  };
  const step = async () => {
    await pipeline.stopCancelled();
    await pipeline.claim();
    return pipeline.step();
  };
  return {
    store,
    clock,
    pipeline,
    advance: () => open(store).advance(),
    async begin(id, fields = {}) {
      await store.createBatch(makeBatch(id, fields));
    },
    async fill(id, { mayDie = 0, seed = 1 } = {}) {
      const random = makeRandom(seed);
      for (let idle = 0; ; ) {
        await keep(mayDie === 0 ? store : crashing(store, () => random() < mayDie));
        const record = await store.batch(batchId.parse(id));
        if (record?.state !== 'open') return record;
        idle = (await step()) ? 0 : idle + 1;
        if (idle > 20) throw new Error(`batch ${id} is stuck: ${JSON.stringify(record)}`);
      }
    },
    async settle() {
      do await keep();
      while (await step());
    },
    [Symbol.asyncDispose]: () => bed[Symbol.asyncDispose](),
  };
}

const decisions = new Set(['beginGroup', 'takeGroup', 'renewGroup', 'replaceSiblings', 'settleGroup', 'endBatch']);

/** A store that fails at a random write, as if its user had crashed, and accepts no further writes. */
function crashing(store: Store, dies: () => boolean): Store {
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
