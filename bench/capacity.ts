// 10,000 queued and 500 running rollouts on one machine, with a backend that takes 200 ms per turn: event loop lag and memory. Once with
// rollouts that need no sandbox, and once with 500 real sandboxes.

import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ServiceStatus, SubmissionInput } from '@millrace/protocol';
import { findCgroups } from '@millrace/sandbox';
import { openFakeBackendProcess, qwen3Folder, TestService } from '@millrace/testkit';
import { readPssMiB } from './report/processes.ts';
import { type BenchReport, percentile } from './report/report.ts';

const queued = 10_000;
const running = 500;
const workers = 2;
const readySlots = 32;
const latencyMs = 200;
const seconds = 30;
/** Processes report their lag in windows of about ten seconds; the windows of the start-up do not count. */
const settleMs = 22_000;
/** Rollouts of different lengths, so that they do not end all at once. */
const turns = { fewest: 25, most: 75 };

const kinds = {
  plain: { title: 'no machine', submission: { scenario: 'turns', task: {} } },
  sandboxes: { title: 'each in a sandbox', submission: { scenario: 'shell', task: { instruction: 'Go.', check: 'true' } } },
} as const satisfies Record<string, { title: string; submission: SubmissionInput }>;

export async function runCapacityBench(kind: keyof typeof kinds): Promise<BenchReport> {
  const { title, submission } = kinds[kind];
  // The fake backend gets the weight of the workers: a real one runs on another machine, and competes with none of them.
  await findCgroups({ enter: true });
  const freeMiB = readAvailableMiB();
  // With sandboxes, no rollout ends during the measurement: starting the next one would take CPU time from the turns.
  const more = kind === 'plain' ? 1 : 40;
  await using backend = await openFakeBackendProcess({ policy: 'fixed', turns: more * turns.most, tokensPerTurn: 64, latencyMs });
  const scenarios = [fileURLToPath(new URL('./turns/turns-scenario.ts', import.meta.url))];
  const pipeline = { runSlots: running / workers, readySlots, initSlots: 8, handBackMs: 0 };
  await using service = await TestService.open({ workers, tokenizer: qwen3Folder(), scenarios, pipeline });
  await service.client.backends.join({ url: backend.url });
  const submitMs = await submitAll(service, submission, more);
  const startMs = await waitUntilFull(service);
  await pause(settleMs);
  const usedMiB = freeMiB - readAvailableMiB();
  const { lags, turnRate, fewest } = await measure(service);
  const pids = (await service.client.status()).workers.filter(({ alive }) => alive).map(({ pid }) => pid);
  return {
    title: `${queued.toLocaleString('en')} queued and ${running} running rollouts, ${latencyMs} ms a turn, ${title}`,
    rows: [
      { what: 'server: event loop lag, p99 of ten seconds', unit: 'ms', samples: lags.server },
      { what: 'workers: event loop lag, p99 of ten seconds', unit: 'ms', samples: lags.worker },
      { what: 'turns per second that the backend alone allows', unit: 'turns/s', samples: [(running * 1000) / latencyMs] },
      { what: 'turns per second', unit: 'turns/s', samples: [turnRate], larger: 'better' },
      { what: `accepting ${(queued + running).toLocaleString('en')} rollouts`, unit: 'ms', samples: [submitMs] },
      { what: `from then until ${running} run`, unit: 'ms', samples: [startMs] },
      { what: 'memory of the server', unit: 'MiB', samples: [readPssMiB(service.pid)] },
      { what: `memory of a worker with ${running / workers} running rollouts`, unit: 'MiB', samples: pids.map(readPssMiB) },
      { what: 'memory of all of it, sandboxes and fake backend too', unit: 'MiB', samples: [usedMiB] },
    ],
    targets: [
      {
        claim: `${running} ran and at least ${queued / 2} waited throughout (fewest: ${fewest.running} and ${fewest.queued})`,
        kept: fewest.running >= running * 0.98 && fewest.queued >= queued / 2,
      },
      {
        claim: 'event loop lag p99 < 50 ms in server and workers',
        kept: percentile(lags.server, 0.99) < 50 && percentile(lags.worker, 0.99) < 50,
      },
    ],
    notes: ['The fake backend runs on the same cores; what it and the tool calls take is not there for the service.'],
  };
}

async function submitAll({ client }: TestService, submission: SubmissionInput, more: number): Promise<number> {
  const submissions = Array.from({ length: queued + running }, (_, index) => ({
    ...submission,
    limits: { max_turns: more * (turns.fewest + ((index * 7) % (turns.most - turns.fewest))) },
  }));
  const startedAt = performance.now();
  await client.submit(submissions);
  return performance.now() - startedAt;
}

/** Waits until all run and the places for prepared ones are full: sandboxes that start take time from turns. Returns how long it took until all ran. */
async function waitUntilFull({ client }: TestService): Promise<number> {
  const startedAt = performance.now();
  while ((await client.status()).rollouts.run < running) await pause(100);
  const startMs = performance.now() - startedAt;
  while ((await client.status()).rollouts.ready < 0.9 * workers * readySlots) await pause(100);
  return startMs;
}

async function measure({ client }: TestService) {
  const lags: { server: number[]; worker: number[] } = { server: [], worker: [] };
  const fewest = { running, queued };
  const startedAt = performance.now();
  const first = countTurns(await client.status());
  for (let second = 0; second < seconds; second += 1) {
    await pause(1000);
    const { loop_lag_ms, workers: all, rollouts } = await client.status();
    lags.server.push(loop_lag_ms.p99);
    for (const { report } of all) if (report) lags.worker.push(report.loop_lag_ms.p99);
    fewest.running = Math.min(fewest.running, rollouts.run);
    fewest.queued = Math.min(fewest.queued, rollouts.queued);
  }
  const last = countTurns(await client.status());
  return { lags, fewest, turnRate: (last - first) / ((performance.now() - startedAt) / 1000) };
}

function countTurns({ workers: all }: ServiceStatus): number {
  return all.reduce((total, { report }) => total + (report?.turns ?? 0), 0);
}

function readAvailableMiB(): number {
  return Number(/^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) / 1024;
}
