// Measures the two engines of the store next to each other, in the same run and on the same disk: whole ways of a rollout (claim, three
// moves, an ending with its trajectory), by several workers that each have their own handle. Claims alone: bench/cluster/claims.ts.

import { join } from 'node:path';
import { type WorkerId, workerId } from '@millrace/protocol';
import { makeResult, makeRollout, makeTempFolder, makeTrajectory, PostgresServer } from '@millrace/testkit';
import { systemClock } from '../packages/base/src/clock.ts';
import { silentLog } from '../packages/base/src/log.ts';
import { openStore } from '../packages/store/src/open/open-store.ts';
import type { Store } from '../packages/store/src/store.ts';
import type { BenchReport } from './report/report.ts';

const rollouts = 2_000;
const handles = 4;
/** Rollouts that each worker has under way. */
const lanes = 16;

export async function runStoreEnginesBench(): Promise<BenchReport> {
  await using folder = await makeTempFolder('millrace-bench');
  await using server = await PostgresServer.open({ isDurable: true });
  const sqlite = await measure(join(folder.path, 'store.db'));
  const postgres = await measure(await server.makeAddress());
  return {
    title: `Store engines: ${rollouts} rollouts, ${handles} workers in one process`,
    rows: [
      { what: 'transitions with their endings, SQLite', unit: '1/s', samples: [sqlite], larger: 'better' },
      { what: 'transitions with their endings, PostgreSQL', unit: '1/s', samples: [postgres], larger: 'better', against: 0 },
    ],
    notes: [
      'Both commit to the disk of the temporary folder before they answer. PostgreSQL shares the cores with its clients, over a Unix socket.',
    ],
  };
}

/** Transitions per second. */
async function measure(address: string): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const stores = await Array.fromAsync({ length: handles }, async () =>
    stack.use(await openStore(address, { clock: systemClock, log: silentLog })),
  );
  const workers = await Promise.all(stores.map((store, index) => register(store, `bench-${index}`)));
  const each = (work: (store: Store, worker: WorkerId) => Promise<void>) =>
    Promise.all(stores.map((store, index) => work(store, workers[index] ?? workerId.parse('none'))));
  await submitAll(stores[0], 'run');
  return await timed(() => each(runAll), rollouts * 5);
}

async function register(store: Store, name: string): Promise<WorkerId> {
  const id = workerId.parse(name);
  await store.registerWorker({ id, host: 'bench', pid: process.pid }, { leaseMs: 3_600_000 });
  return id;
}

async function submitAll(store: Store | undefined, name: string): Promise<void> {
  await store?.submit(
    Array.from({ length: rollouts }, (_, index) => makeRollout(`${name}-${index}`)),
    { maxQueued: 2 * rollouts },
  );
}

async function runAll(store: Store, worker: WorkerId): Promise<void> {
  const runLane = async () => {
    for (let [claim] = await store.claim(worker, 1); claim; [claim] = await store.claim(worker, 1)) {
      for (const stage of ['ready', 'run', 'evaluate'] as const) await store.move(claim, stage);
      await store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, claim.attempt) });
    }
  };
  await Promise.all(Array.from({ length: lanes }, runLane));
}

/** How many of `count` per second. */
async function timed(work: () => Promise<unknown>, count: number): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (1_000 * count) / (performance.now() - startedAt);
}
