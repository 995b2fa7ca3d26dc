// Measures the store: transitions per second, their latency and the event loop stalls. The baseline runs the same statements in
// one synchronous transaction per transition on the event loop.

import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { toBinary, type WorkerId, workerId } from '@millrace/protocol';
import { makeResult, makeRollout, makeTempFolder, makeTrajectory } from '@millrace/testkit';
import { systemClock } from '../packages/base/src/clock.ts';
import { silentLog } from '../packages/base/src/log.ts';
import type { Claim } from '../packages/store/src/claim.ts';
import { compress } from '../packages/store/src/rows/compression.ts';
import { writes } from '../packages/store/src/rows/operations.ts';
import { openConnection } from '../packages/store/src/sqlite/engine/connection.ts';
import { makeTables } from '../packages/store/src/sqlite/engine/schema.ts';
import { openSqliteStore } from '../packages/store/src/sqlite/sqlite.ts';
import type { Store } from '../packages/store/src/store.ts';
import type { Transaction } from '../packages/store/src/transaction.ts';
import type { BenchReport } from './report/report.ts';

const rollouts = 3_000;
const callers = 64;
const stages = ['ready', 'run', 'evaluate'] as const;
const worker: WorkerId = workerId.parse('bench');

/** What one caller does with the store, on both sides. */
interface Transitions {
  claim(): Promise<Claim | undefined>;
  move(claim: Claim, to: (typeof stages)[number]): Promise<boolean>;
  finish(claim: Claim): Promise<boolean>;
}

interface StoreMeasurement {
  readonly perSecond: number;
  readonly latencyMs: readonly number[];
  readonly stallMs: number;
}

export async function runStoreBench(): Promise<BenchReport> {
  await using folder = await makeTempFolder('millrace-bench');
  const naive = await runNaive(join(folder.path, 'naive.db'));
  const ours = await runOurs(join(folder.path, 'store.db'));
  return {
    title: `Store: ${rollouts} rollouts through claim, three moves and an ending with its trajectory, ${callers} callers at once`,
    rows: [
      { what: 'transitions, one synchronous transaction each', unit: '1/s', samples: [naive.perSecond], larger: 'better' },
      { what: 'transitions, grouped off the event loop', unit: '1/s', samples: [ours.perSecond], larger: 'better', against: 0 },
      { what: 'latency of a transition, synchronous', unit: 'ms', samples: naive.latencyMs },
      { what: 'latency of a transition, grouped', unit: 'ms', samples: ours.latencyMs, against: 2 },
      { what: 'event loop stall at p99, synchronous', unit: 'ms', samples: [naive.stallMs] },
      { what: 'event loop stall at p99, grouped', unit: 'ms', samples: [ours.stallMs], against: 4 },
    ],
    targets: [{ claim: 'the store stalls the event loop for less than 50 ms at p99', kept: ours.stallMs < 50 }],
    notes: ['Both sides: SQLite, WAL, synchronous=FULL, the same statements, the same folder.'],
  };
}

async function runOurs(path: string): Promise<StoreMeasurement> {
  await using store: Store = await openSqliteStore({ path, clock: systemClock, log: silentLog });
  await store.registerWorker({ id: worker, host: 'bench', pid: process.pid }, { leaseMs: 3_600_000 });
  await store.submit(makeAll(), { maxQueued: rollouts });
  return await measure({
    claim: async () => (await store.claim(worker, 1))[0],
    move: (claim, to) => store.move(claim, to),
    finish: (claim) => store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, claim.attempt) }),
  });
}

async function runNaive(path: string): Promise<StoreMeasurement> {
  const { db, statements, commit, at } = openConnection(path, { readOnly: false });
  makeTables(statements);
  const transact = async <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> => {
    db.exec('BEGIN IMMEDIATE');
    const value = await work(at(Date.now()));
    commit();
    return value;
  };
  await transact((transaction) => writes.registerWorker(transaction, { id: worker, host: 'bench', pid: process.pid, leaseMs: 3_600_000 }));
  const stored = makeAll().map(({ id, digest, submission }) => ({
    id,
    digest,
    scenario: submission.scenario,
    body: JSON.stringify({ ...submission, task: undefined }),
    task: JSON.stringify(submission.task),
  }));
  await transact((transaction) => writes.submit(transaction, { rollouts: stored, maxQueued: rollouts }));
  const measured = await measure({
    claim: async () => (await transact((transaction) => writes.claim(transaction, { worker, limit: 1, labels: {} })))[0],
    move: async (claim, to) => transact((transaction) => writes.move(transaction, { claim, to })),
    finish: async (claim) => {
      const trajectory = await compress(toBinary(makeTrajectory(claim.id, claim.attempt)));
      return transact((transaction) => writes.finish(transaction, { claim, ending: { state: 'done', result: makeResult(1), trajectory } }));
    },
  });
  db.close();
  return measured;
}

function makeAll() {
  return Array.from({ length: rollouts }, (_, index) => makeRollout(`r${index}`));
}

async function measure(transitions: Transitions): Promise<StoreMeasurement> {
  const latencyMs: number[] = [];
  const timed = async <T>(work: () => Promise<T>): Promise<T> => {
    const start = performance.now();
    // Each caller stands for a separate request, which starts in its own turn of the event loop and waits for it.
    await new Promise(setImmediate);
    const value = await work();
    latencyMs.push(performance.now() - start);
    return value;
  };
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const start = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let claim = await timed(transitions.claim); claim; claim = await timed(transitions.claim)) {
        const held = claim;
        for (const stage of stages) await timed(() => transitions.move(held, stage));
        await timed(() => transitions.finish(held));
      }
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  delay.disable();
  return { perSecond: (rollouts * (stages.length + 2)) / seconds, latencyMs, stallMs: delay.percentile(99) / 1e6 };
}
