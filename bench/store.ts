// Measures the store: transitions per second, the latency of each acknowledged one, and how long the event loop stands still,
// beside the same statements run as one synchronous transaction per transition on the event loop.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { toBinary, type WorkerId, workerId } from '@millrace/protocol';
import { makeResult, makeRollout, makeTrajectory } from '@millrace/testkit';
import { makeTables } from '../packages/server/src/store/sqlite/engine/schema.ts';
import { openConnection, type Session } from '../packages/server/src/store/sqlite/engine/session.ts';
import { writes } from '../packages/server/src/store/sqlite/operations.ts';
import { compress, openSqliteStore } from '../packages/server/src/store/sqlite/sqlite.ts';
import type { Claim, Store } from '../packages/server/src/store/store.ts';
import { type BenchReport, renderReport } from './report/report.ts';

const rollouts = 3_000;
const callers = 64;
const stages = ['ready', 'run', 'evaluate'] as const;
const worker: WorkerId = workerId.parse('bench');

/** What one caller does with the store, for both sides. */
interface Transitions {
  claim(): Promise<Claim | undefined>;
  move(claim: Claim, to: (typeof stages)[number]): Promise<boolean>;
  finish(claim: Claim): Promise<boolean>;
}

interface Measured {
  readonly perSecond: number;
  readonly latencyMs: readonly number[];
  readonly stallMs: number;
}

export async function runStoreBench(): Promise<BenchReport> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  try {
    const naive = await runNaive(join(folder, 'naive.db'));
    const ours = await runOurs(join(folder, 'store.db'));
    return {
      title: `Store: ${rollouts} rollouts through claim, three moves and an ending with its trajectory, ${callers} callers at once`,
      rows: [
        { what: 'transitions, one synchronous transaction each', unit: '1/s', samples: [naive.perSecond], larger: 'better' },
        { what: 'transitions, grouped off the event loop', unit: '1/s', samples: [ours.perSecond], larger: 'better', against: 0 },
        { what: 'until a transition is acknowledged, synchronous', unit: 'ms', samples: naive.latencyMs },
        { what: 'until a transition is acknowledged, grouped', unit: 'ms', samples: ours.latencyMs, against: 2 },
        { what: 'event loop stall at p99, synchronous', unit: 'ms', samples: [naive.stallMs] },
        { what: 'event loop stall at p99, grouped', unit: 'ms', samples: [ours.stallMs], against: 4 },
      ],
      targets: [{ claim: 'the store never holds the event loop for 50 ms at p99', kept: ours.stallMs < 50 }],
      notes: ['Both sides: SQLite, WAL, synchronous=FULL, the same statements, the same folder.'],
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function runOurs(path: string): Promise<Measured> {
  await using store: Store = await openSqliteStore({ path });
  await store.registerWorker({ id: worker, host: 'bench', pid: process.pid }, { leaseMs: 3_600_000 });
  await store.submit(makeAll(), { maxQueued: rollouts });
  return await measure({
    claim: async () => (await store.claim(worker, 1))[0],
    move: (claim, to) => store.move(claim, to),
    finish: (claim) => store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, claim.attempt) }),
  });
}

async function runNaive(path: string): Promise<Measured> {
  const { db, at } = openConnection(path, { readOnly: false });
  makeTables(at(Date.now()));
  const transact = <T>(work: (session: Session) => T): T => {
    db.exec('BEGIN IMMEDIATE');
    const value = work(at(Date.now()));
    db.exec('COMMIT');
    return value;
  };
  transact((session) => writes.registerWorker(session, { id: worker, host: 'bench', pid: process.pid, leaseMs: 3_600_000 }));
  const stored = makeAll().map(({ id, digest, submission }) => ({
    id,
    digest,
    scenario: submission.scenario,
    body: JSON.stringify(submission),
  }));
  transact((session) => writes.submit(session, { rollouts: stored, maxQueued: rollouts }));
  const measured = await measure({
    claim: async () => transact((session) => writes.claim(session, { worker, limit: 1 }))[0],
    move: async (claim, to) => transact((session) => writes.move(session, { claim, to })),
    finish: async (claim) => {
      const trajectory = await compress(toBinary(makeTrajectory(claim.id, claim.attempt)));
      return transact((session) => writes.finish(session, { claim, ending: { state: 'done', result: makeResult(1), trajectory } }));
    },
  });
  db.close();
  return measured;
}

function makeAll() {
  return Array.from({ length: rollouts }, (_, index) => makeRollout(`r${index}`));
}

async function measure(transitions: Transitions): Promise<Measured> {
  const latencyMs: number[] = [];
  const timed = async <T>(work: () => Promise<T>): Promise<T> => {
    const start = performance.now();
    // Callers are different requests: each is taken up in a turn of the event loop of its own, and waits for that turn.
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

if (import.meta.main) process.stdout.write(renderReport(await runStoreBench()));
