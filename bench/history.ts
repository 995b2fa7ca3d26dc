// Measures what history costs: the latency of the store's calls with 300,000 finished rollouts against an empty store, call by call
// in turn, and how long a submission waits while retention deletes them.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { batchId, workerId } from '@millrace/protocol';
import { makeBatch, makeGroup, makeReport, makeResult, makeRollout, makeTempFolder } from '@millrace/testkit';
import { systemClock } from '../packages/server/src/base/clock.ts';
import { silentLog } from '../packages/server/src/base/log.ts';
import { openSqliteStore } from '../packages/server/src/store/sqlite/sqlite.ts';
import type { Store } from '../packages/server/src/store/store.ts';
import { type BenchReport, percentile, renderReport } from './report/report.ts';

const history = 300_000;
const rounds = 1000;
const worker = workerId.parse('bench');
const hourMs = 3_600_000;
const trajectoryBytes = 2000;

type StoreCall = (store: Store, round: number) => Promise<unknown>;

const calls: Readonly<Record<string, StoreCall>> = {
  submit: (store, round) => store.submit([makeRollout(`new-${round}`)], { maxQueued: 1_000_000 }),
  claim: (store) => store.claim(worker, 1),
  'batch read': (store) => store.batch(batchId.parse('now')),
  'event read': async (store) => store.events((await store.lastEventId()) - 100, { limit: 100 }),
  counts: (store) => store.counts(),
  load: (store) => store.load(batchId.parse('now')),
};

export async function runHistoryBench(): Promise<BenchReport> {
  await using folder = await makeTempFolder('millrace-bench');
  const [empty, full] = [join(folder.path, 'empty.db'), join(folder.path, 'full.db')];
  await (await openSqliteStore({ path: full, clock: systemClock, log: silentLog }))[Symbol.asyncDispose]();
  writeHistory(full);
  for (const path of [empty, full]) await prepare(path);
  await using stores = new AsyncDisposableStack();
  const open = async (path: string) => stores.use(await openSqliteStore({ path, clock: systemClock, log: silentLog }));
  const [before, after] = [await open(empty), await open(full)];
  const rows = [];
  const ratios: { readonly what: string; readonly ratio: number }[] = [];
  for (const [what, call] of Object.entries(calls)) {
    const samples = await measure(call, [before, after]);
    ratios.push({ what, ratio: percentile(samples[1] ?? [], 0.99) / percentile(samples[0] ?? [], 0.99) });
    rows.push({ what: `${what}, empty store`, unit: 'ms', samples: samples[0] ?? [] });
    rows.push({
      what: `${what}, ${history.toLocaleString('en')} rollouts`,
      unit: 'ms',
      samples: samples[1] ?? [],
      against: rows.length - 1,
    });
  }
  const waits = await measureRetention(after);
  rows.push({ what: 'submit while retention deletes them', unit: 'ms', samples: waits });
  return {
    title: `History: calls of a store with ${history.toLocaleString('en')} finished rollouts against an empty one`,
    rows,
    targets: [
      ...ratios.map(({ what, ratio }) => ({
        claim: `${what}: p99 within 1.5 × of an empty store (${ratio.toFixed(2)} ×)`,
        kept: ratio <= 1.5,
      })),
    ],
    notes: ['Half of the history is plain, half belongs to batches. Each call alternates between the two stores.'],
  };
}

/** A worker, and an open batch with a few groups. */
async function prepare(path: string): Promise<void> {
  await using store = await openSqliteStore({ path, clock: systemClock, log: silentLog });
  await store.registerWorker({ id: worker, host: 'bench', pid: 1 }, { leaseMs: hourMs });
  await store.renew(worker, { leaseMs: hourMs, report: makeReport(0) });
  await store.createBatch(makeBatch('now', { count: 100, target: 100 }));
  for (let begun = 0; begun < 20; begun += 1) await store.beginGroup(makeGroup('now', begun, 8));
  await store.submit(
    Array.from({ length: 2 * rounds }, (_, index) => makeRollout(`queued-${index}`)),
    { maxQueued: 1_000_000 },
  );
}

/** Finished rollouts of last week as rows: half plain, half in ended batches of 64 groups of 8. */
function writeHistory(path: string): void {
  const db = new DatabaseSync(path);
  const endedAt = Date.now() - 48 * hourMs;
  const result = JSON.stringify(makeResult(1));
  const plan = JSON.stringify(makeBatch('old').plan);
  const body = JSON.stringify(makeRollout('x').submission);
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 1000000 UNION ALL SELECT i + 1 FROM n WHERE i < ${1_000_000 + history - 1})`;
  const isMember = '(i % 2)';
  db.exec(`BEGIN;
    INSERT INTO batches (seq, id, digest, recipe, state, plan, target, closed, created_at, ended_at, delivered)
      ${numbers} SELECT DISTINCT i / 1024, 'old-' || (i / 1024), '', '', 'met', '${plan}', 64, 1, ${endedAt}, ${endedAt}, 64 FROM n;
    INSERT INTO batch_groups (seq, id, batch_seq, state, task_index, task, created_at, ended_at)
      ${numbers} SELECT DISTINCT i / 16, 'old-group-' || (i / 16), i / 1024, 'delivered', 0, '{}', ${endedAt}, ${endedAt} FROM n;
    INSERT INTO rollouts (seq, id, digest, scenario, state, attempt, is_sibling, created_at, queued_at, not_before, ended_at, result)
      ${numbers} SELECT i, 'old-' || i, '', 'math', 'done', 1, ${isMember}, ${endedAt}, ${endedAt}, ${endedAt}, ${endedAt}, '${result}' FROM n;
    INSERT INTO siblings (seq, group_seq, batch_seq, place) ${numbers} SELECT i, i / 16, i / 1024, 0 FROM n WHERE ${isMember};
    INSERT INTO submissions (seq, body) ${numbers} SELECT i, '${body.replaceAll("'", "''")}' FROM n;
    INSERT INTO trajectories (seq, body) ${numbers} SELECT i, randomblob(${trajectoryBytes}) FROM n;
    INSERT INTO events (at, kind, rollout_id, data) ${numbers} SELECT ${endedAt}, 'rollout-end', 'old-' || i, '{}' FROM n;
    COMMIT; PRAGMA wal_checkpoint(TRUNCATE)`);
  db.close();
}

async function measure(call: StoreCall, stores: readonly Store[]): Promise<number[][]> {
  const samples: number[][] = stores.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, store] of stores.entries()) {
      const start = performance.now();
      await call(store, round);
      samples[index]?.push(performance.now() - start);
    }
  }
  return samples;
}

async function measureRetention(store: Store): Promise<number[]> {
  let isDone = false;
  const retained = store.retain({ endedMs: 24 * hourMs, eventsMs: 24 * hourMs }).finally(() => {
    isDone = true;
  });
  const waits: number[] = [];
  for (let round = 0; !isDone; round += 1) {
    const start = performance.now();
    await store.submit([makeRollout(`during-${round}`)], { maxQueued: 1_000_000 });
    waits.push(performance.now() - start);
  }
  const deleted = await retained;
  if (deleted < history / 2) throw new Error(`retention deleted ${deleted} rollouts`);
  return waits;
}

if (import.meta.main) process.stdout.write(renderReport(await runHistoryBench()));
