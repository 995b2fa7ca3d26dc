// Reading a page of 16 groups of 16 rollouts with 32k tokens each, in each format: how long the server's event loop is blocked, and how
// much memory the server takes beyond what it had. The baseline builds the same page as one value, as a plain JSON route would.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { batchId, groupsMediaType, type Trajectory, toTrajectoryView, workerId } from '@millrace/protocol';
import { makeResult, makeTrajectory, qwen3Folder, TestService } from '@millrace/testkit';
import { systemClock } from '../../packages/base/src/clock.ts';
import { silentLog } from '../../packages/base/src/log.ts';
import { openSqliteStore } from '../../packages/store/src/sqlite/sqlite.ts';
import { readMemoryMiB } from '../report/processes.ts';
import { type BenchReport, percentile } from '../report/report.ts';

const [groups, size, turns, tokensPerTurn] = [16, 16, 16, 2048];
/** The first page of a server that has just started, and four more. */
const rounds = 5;
/** The service reports its lag in windows of ten seconds. */
const windowMs = 10_500;

export async function runDeliveryBench(): Promise<BenchReport> {
  await using service = await TestService.open({ workers: 0, tokenizer: qwen3Folder(), http: { maxPageBytes: 1 << 30 } });
  await fill(service);
  const baseline = buildAsOneValue();
  const binary = await readPages(service, groupsMediaType);
  const json = await readPages(service, 'application/json');
  return {
    title: `Delivery: a page of ${groups} groups of ${size} rollouts with ${(turns * tokensPerTurn) / 1024}k tokens each`,
    rows: [
      { what: 'one group as one JSON value: event loop blocked', unit: 'ms', samples: [baseline] },
      {
        what: 'the binary page: longest block of the event loop',
        unit: 'ms',
        samples: binary.map(({ blockedMs }) => blockedMs),
        against: 0,
      },
      {
        what: 'the page as JSON: longest block of the event loop',
        unit: 'ms',
        samples: json.map(({ blockedMs }) => blockedMs),
        against: 0,
      },
      { what: 'the binary page: memory of the server beyond the start', unit: 'MiB', samples: binary.map(({ memoryMiB }) => memoryMiB) },
      { what: 'the page as JSON: memory of the server beyond the start', unit: 'MiB', samples: json.map(({ memoryMiB }) => memoryMiB) },
      { what: 'the binary page: size', unit: 'MiB', samples: binary.map(({ sizeMiB }) => sizeMiB) },
      { what: 'the page as JSON: size', unit: 'MiB', samples: json.map(({ sizeMiB }) => sizeMiB) },
      { what: 'the binary page: time', unit: 's', samples: binary.map(({ seconds }) => seconds) },
      { what: 'the page as JSON: time', unit: 's', samples: json.map(({ seconds }) => seconds) },
    ],
    targets: [...judge('a binary page', binary), ...judge('a page of JSON', json)],
    notes: ['The reader is another process on the same machine, and discards what it reads.'],
  };
}

function judge(what: string, pages: readonly PageCost[]): { claim: string; kept: boolean }[] {
  const blocked = pages.map(({ blockedMs }) => blockedMs);
  const beyond = Math.max(...pages.map(({ memoryMiB, sizeMiB }) => memoryMiB - sizeMiB));
  const [usual, worst] = [percentile(blocked, 0.5), Math.max(...blocked)].map((ms) => ms.toFixed(1));
  return [
    { claim: `${what} blocks the event loop for less than 20 ms: ${usual} usually, ${worst} at most`, kept: Math.max(...blocked) < 20 },
    { claim: `${what} takes less than 64 MiB beyond itself`, kept: beyond < 64 },
  ];
}

/** A batch of the service, whose rollouts this process ends as a worker would. */
async function fill(service: TestService): Promise<void> {
  const id = batchId.parse('page');
  const tasks = Array.from({ length: groups }, (_, index) => ({ question: `${index} + 1`, answer: `${index + 1}` }));
  await service.client.batches.create({ id, scenario: 'math', group_size: size, target: groups, tasks });
  await using store = await openSqliteStore({ path: join(service.folder, 'data', 'millrace.db'), clock: systemClock, log: silentLog });
  for (let ended = 0; ended < groups * size; ) {
    const worker = workerId.parse(`w-${ended}`);
    await store.registerWorker({ id: worker, host: 'bench', pid: process.pid }, { leaseMs: 60_000 });
    const claims = await store.claim(worker, size);
    for (const [index, claim] of claims.entries()) {
      for (const to of ['ready', 'run', 'evaluate'] as const) await store.move(claim, to);
      await store.finish(claim, { state: 'done', result: makeResult(index % 2), trajectory: makeLong(claim.id, ended + index) });
    }
    ended += claims.length;
    if (claims.length === 0) await wait(50);
  }
  while ((await service.client.batches.get(id)).state === 'open') await wait(100);
}

function makeLong(id: string, seed: number): Trajectory {
  const trajectory = makeTrajectory(id, 1);
  const segments = Array.from({ length: turns }, (_, turn) => {
    const tokenIds = Int32Array.from({ length: tokensPerTurn }, (_, index) => Math.abs(Math.sin(seed + turn + index) * 1e9) % 150_000);
    const logprobs = Float32Array.from(tokenIds, (value) => -Math.abs(Math.sin(value)));
    const messages = [{ role: 'assistant' as const, content: 'x'.repeat(4 * tokensPerTurn) }];
    return { kind: 'sampled' as const, turn: turn + 1, text: 'x'.repeat(4 * tokensPerTurn), messages, tokenIds, logprobs };
  });
  return { ...trajectory, segments };
}

function buildAsOneValue(): number {
  const trajectories = Array.from({ length: size }, (_, index) => makeLong(`r-${index}`, index));
  const startedAt = performance.now();
  JSON.stringify({ trajectories: trajectories.map(toTrajectoryView) });
  return performance.now() - startedAt;
}

interface PageCost {
  readonly blockedMs: number;
  readonly memoryMiB: number;
  readonly sizeMiB: number;
  readonly seconds: number;
}

async function readPages(service: TestService, accept: string): Promise<PageCost[]> {
  const pages: PageCost[] = [];
  for (let round = 0; round < rounds; round += 1) pages.push(await readPage(service, accept));
  return pages;
}

async function readPage(service: TestService, accept: string): Promise<PageCost> {
  await wait(windowMs);
  await service.client.status(); // ends the window
  const before = readMemoryMiB(service.pid, 'VmRSS');
  writeFileSync(`/proc/${service.pid}/clear_refs`, '5'); // resets the peak
  const startedAt = performance.now();
  const reply = await fetch(`${service.url}/v1/batches/page/groups?trajectories=true`, { headers: { accept } });
  let bytes = 0;
  for await (const chunk of reply.body ?? []) bytes += chunk.length;
  const seconds = (performance.now() - startedAt) / 1000;
  const memoryMiB = readMemoryMiB(service.pid, 'VmHWM') - before;
  await wait(Math.max(0, windowMs - 1000 * seconds));
  const { loop_lag_ms } = await service.client.status();
  return { blockedMs: loop_lag_ms.max, memoryMiB, sizeMiB: bytes / 2 ** 20, seconds };
}
