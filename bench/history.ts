// `npm run soak`, and the benchmark `history`: weeks of a service in a few minutes. 300,000 rollouts are run through the store while its
// clock passes quickly. Then every call is measured against an empty store, and the service goes on with retention: memory and file must
// stay as they are.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { batchId, workerId } from '@millrace/protocol';
import { makeBatch, makeGroup, makeReport, makeRollout, makeTempFolder } from '@millrace/testkit';
import { silentLog } from '../packages/base/src/log.ts';
import { openSqliteStore } from '../packages/store/src/sqlite/sqlite.ts';
import type { Store } from '../packages/store/src/store.ts';
import { bytesPerSampledToken, PassingClock, runHistory } from './history/run-history.ts';
import { type BenchReport, percentile } from './report/report.ts';

const history = 300_000;
/** Rollouts of one day. */
const perDay = 20_480;
const keptDays = Math.ceil(history / perDay);
/** Days that pass with retention after the history is complete. */
const soakDays = 6;
const rounds = 1000;
const worker = workerId.parse('bench');
const dayMs = 86_400_000;
const mib = 2 ** 20;

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
  await using stores = new AsyncDisposableStack();
  const clock = new PassingClock();
  const open = async (name: string) => stores.use(await openSqliteStore({ path: join(folder.path, name), clock, log: silentLog }));
  const [empty, full] = [await open('empty.db'), await open('full.db')];
  const other = await open('full.db');
  const startedAt = performance.now();
  for (let day = 0; day < keptDays; day += 1) {
    await runHistory(full, { prefix: `day-${day}`, count: Math.min(perDay, history - day * perDay) });
    clock.pass(dayMs);
  }
  const builtS = (performance.now() - startedAt) / 1000;
  const soak = await runSoak({ full, other, clock, path: join(folder.path, 'full.db') });
  for (const store of [empty, full]) await prepare(store);
  const { rows, ratios } = await compare(empty, full);
  const { fileBytes, rssBytes, waits, deleted } = soak;
  rows.push(
    { what: 'a write of another process while retention deletes', unit: 'ms', samples: waits },
    { what: `file after each of ${soakDays} days with retention`, unit: 'MiB', samples: fileBytes.map((bytes) => bytes / mib) },
    { what: 'memory of the process after each of them', unit: 'MiB', samples: rssBytes.map((bytes) => bytes / mib) },
    { what: 'stored bytes of a sampled token, with its logprob', unit: 'B', samples: [await bytesPerSampledToken()] },
  );
  return {
    title: `History: calls of a store with ${history.toLocaleString('en')} finished rollouts against an empty one`,
    rows,
    targets: [
      ...ratios.map(({ what, ratio }) => ({
        claim: `${what}: p99 within 1.5 × of an empty store (${ratio.toFixed(2)} ×)`,
        kept: ratio <= 1.5,
      })),
      { claim: `the file stays as large as it was (${toGrowth(fileBytes)})`, kept: growthOf(fileBytes) <= 1.05 },
      { claim: `memory stays as it was (${toGrowth(rssBytes)})`, kept: growthOf(rssBytes) <= 1.2 },
    ],
    notes: [
      `${history.toLocaleString('en')} rollouts ran through the store in ${builtS.toFixed(0)} s: half of them plain, half in batches. Then ${soakDays} days passed, each with ${perDay.toLocaleString('en')} new rollouts and as many deleted (${deleted.toLocaleString('en')} in all). Each call alternates between the two stores.`,
    ],
  };
}

function growthOf(values: readonly number[]): number {
  return (values.at(-1) ?? 0) / (values[0] ?? 1);
}

function toGrowth(values: readonly number[]): string {
  return `${growthOf(values).toFixed(3)} × from the first day to the last`;
}

interface Soaked {
  readonly full: Store;
  /** Another handle on the same file, as of another process. */
  readonly other: Store;
  readonly clock: PassingClock;
  readonly path: string;
}

/** As many rollouts end on each day as retention deletes. */
async function runSoak({ full, other, clock, path }: Soaked) {
  const [fileBytes, rssBytes, waits]: [number[], number[], number[]] = [[], [], []];
  let deleted = 0;
  for (let day = 0; day < soakDays; day += 1) {
    await runHistory(full, { prefix: `soak-${day}`, count: perDay });
    clock.pass(dayMs);
    deleted += await retainWhile(full, async (round) => {
      const start = performance.now();
      await other.cancel(makeRollout(`during-${day}-${round}`).id, { tombstoneMs: 1 });
      waits.push(performance.now() - start);
    });
    fileBytes.push(statSync(path).size);
    globalThis.gc?.();
    rssBytes.push(process.memoryUsage.rss());
  }
  if (deleted < (soakDays * perDay) / 2) throw new Error(`retention deleted only ${deleted} rollouts`);
  return { fileBytes, rssBytes, waits, deleted };
}

async function retainWhile(store: Store, work: (round: number) => Promise<void>): Promise<number> {
  let isDone = false;
  const retained = store.retain({ endedMs: keptDays * dayMs, eventsMs: keptDays * dayMs }).finally(() => {
    isDone = true;
  });
  for (let round = 0; !isDone; round += 1) await work(round);
  return await retained;
}

/** A worker, and an open batch with a few groups. */
async function prepare(store: Store): Promise<void> {
  const leaseMs = dayMs;
  await store.registerWorker({ id: worker, host: 'bench', pid: 1 }, { leaseMs });
  await store.renew(worker, { leaseMs, report: makeReport(0) });
  await store.createBatch(makeBatch('now', { count: 100, target: 100 }));
  for (let begun = 0; begun < 20; begun += 1) await store.beginGroup(makeGroup('now', begun, 8));
  await store.submit(
    Array.from({ length: 2 * rounds }, (_, index) => makeRollout(`queued-${index}`)),
    { maxQueued: 1_000_000 },
  );
}

async function compare(empty: Store, full: Store) {
  const rows: { what: string; unit: string; samples: number[]; against?: number }[] = [];
  const ratios: { readonly what: string; readonly ratio: number }[] = [];
  for (const [what, call] of Object.entries(calls)) {
    const [before = [], after = []] = await measure(call, [empty, full]);
    ratios.push({ what, ratio: percentile(after, 0.99) / percentile(before, 0.99) });
    rows.push({ what: `${what}, empty store`, unit: 'ms', samples: before });
    rows.push({ what: `${what}, ${history.toLocaleString('en')} rollouts`, unit: 'ms', samples: after, against: rows.length - 1 });
  }
  return { rows, ratios };
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
