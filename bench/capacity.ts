// 10,000 queued and 500 running rollouts on one machine, with a backend that takes 200 ms a turn: how late the event loops run,
// and what memory it takes.

import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openFakeBackendProcess, qwen3Folder, TestService } from '@millrace/testkit';
import { readPssMiB } from './processes.ts';
import { type BenchReport, percentile } from './report.ts';

const queued = 10_000;
const running = 500;
const workers = 2;
const seconds = 30;
/** The workers tell their lag over windows of some ten seconds; the first ones, of the start, do not count. */
const settleMs = 12_000;
/** Rollouts of different lengths, so that they do not end all at once. */
const turns = { fewest: 25, most: 75 };
const scenarios = [fileURLToPath(new URL('./turns-scenario.ts', import.meta.url))];

export async function runCapacityBench(): Promise<BenchReport> {
  await using backend = await openFakeBackendProcess({ policy: 'fixed', turns: turns.most, tokensPerTurn: 64, latencyMs: 200 });
  const pipeline = { runSlots: running / workers, readySlots: 32, initSlots: 32 };
  await using service = await TestService.open({ workers, tokenizer: qwen3Folder(), scenarios, pipeline });
  const { client } = service;
  await client.backends.join({ url: backend.url });
  const submitted = Array.from({ length: queued + running }, (_, index) => ({
    scenario: 'turns',
    task: {},
    limits: { max_turns: turns.fewest + ((index * 7) % (turns.most - turns.fewest)) },
  }));
  const startedAt = performance.now();
  await client.submit(submitted);
  const submitMs = performance.now() - startedAt;
  while ((await client.status()).rollouts.run < running) await pause(100);
  await pause(settleMs);

  const lags: { server: number[]; worker: number[] } = { server: [], worker: [] };
  const turnsAtStart = await countTurns(service);
  const measuredAt = performance.now();
  let [fewestRunning, fewestQueued] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let second = 0; second < seconds; second += 1) {
    await pause(1000);
    const status = await client.status();
    lags.server.push(status.loop_lag_ms.p99);
    for (const { report } of status.workers) if (report) lags.worker.push(report.loop_lag_ms.p99);
    fewestRunning = Math.min(fewestRunning, status.rollouts.run);
    fewestQueued = Math.min(fewestQueued, status.rollouts.queued);
  }
  const turnRate = ((await countTurns(service)) - turnsAtStart) / ((performance.now() - measuredAt) / 1000);
  const pids = (await client.status()).workers.filter(({ alive }) => alive).map(({ pid }) => pid);
  const [serverMiB, workerMiB] = [readPssMiB(service.pid), pids.map(readPssMiB)];
  return {
    title: `${queued.toLocaleString('en')} queued and ${running} running rollouts, 200 ms a turn`,
    rows: [
      { what: 'server: event loop lag, p99 of ten seconds', unit: 'ms', samples: lags.server },
      { what: 'workers: event loop lag, p99 of ten seconds', unit: 'ms', samples: lags.worker },
      { what: 'turns per second', unit: 'turns/s', samples: [turnRate], larger: 'better' },
      { what: 'turns per second that the backend alone allows', unit: 'turns/s', samples: [running / 0.2], larger: 'better' },
      { what: `accepting ${submitted.length.toLocaleString('en')} rollouts`, unit: 'ms', samples: [submitMs] },
      { what: 'memory of the server', unit: 'MiB', samples: [serverMiB] },
      { what: 'memory of a worker with 250 running rollouts', unit: 'MiB', samples: workerMiB },
    ],
    targets: [
      {
        claim: `${running} ran and at least ${queued / 2} waited all the time (fewest: ${fewestRunning} and ${fewestQueued})`,
        kept: fewestRunning >= running * 0.98 && fewestQueued >= queued / 2,
      },
      {
        claim: `event loop lag p99 < 50 ms in server and workers`,
        kept: percentile(lags.server, 0.99) < 50 && percentile(lags.worker, 0.99) < 50,
      },
    ],
  };
}

async function countTurns(service: TestService): Promise<number> {
  const { workers: all } = await service.client.status();
  return all.reduce((total, { report }) => total + (report?.turns ?? 0), 0);
}
