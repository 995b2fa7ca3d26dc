// The neighbours benchmark: the time of a shell call in an honest sandbox while another one does its worst, compared with the same call
// before and after, on a quiet machine.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { silentLog } from '@millrace/base/log';
import { openBubblewrapDriver, type Sandbox, type SandboxDriver } from '@millrace/sandbox';
import { type BenchReport, percentile } from '../report/report.ts';
import { sample } from './shell.ts';

const timeoutMs = 60_000;
const calls = 1500;
/** A busy sandbox is noticed within a second. Until then its neighbours may wait. */
const settleMs = 2500;
const hostileLimits = { cpus: 1, memoryMiB: 512, processes: 128, diskMiB: 64 };

/** Each keeps going in the background of its shell. */
const worst: Readonly<Record<string, string>> = {
  'spins in 100 processes': 'for i in {1..100}; do (while :; do :; done) & done',
  'starts programs without end': 'for i in {1..16}; do (while :; do /bin/true; done) & done',
  'forks without end': 'bomb() { bomb | bomb & }; (while :; do bomb; sleep 0.05; done) &',
  'writes to its disk without end': 'for i in 1 2 3 4; do (while :; do head -c 12M /dev/zero > file$i; sync file$i; done) & done',
  'uses up its memory again and again': 'for i in 1 2; do (while :; do python3 -c "x = bytearray(2**30)"; done) & done',
  'floods its terminal': 'for i in 1 2 3; do (yes > /dev/tty) & done',
  'leaves orphans without end': '(while :; do (true &); done) &',
};

export async function runNeighboursBench(): Promise<BenchReport> {
  const runDir = await mkdtemp(join(tmpdir(), 'bench-'));
  const driver = await openBubblewrapDriver({ runDir, log: silentLog });
  const neighbour = await driver.open({});
  await sampleCalls(neighbour, 500); // warm up
  const quiet: number[] = [];
  const rows: { what: string; samples: number[] }[] = [];
  for (const [what, command] of Object.entries(worst)) {
    quiet.push(...(await sampleCalls(neighbour, calls)));
    rows.push({ what, samples: await sampleNext(driver, neighbour, command) });
  }
  await neighbour[Symbol.asyncDispose]();
  await rm(runDir, { recursive: true, force: true });
  const quietP99 = percentile(quiet, 0.99);
  return {
    title: 'A shell call next to a hostile sandbox (bubblewrap)',
    rows: [
      { what: 'no hostile sandbox', unit: 'ms', samples: quiet },
      ...rows.map(({ what, samples }) => ({ what: `next to one that ${what}`, against: 0, unit: 'ms', samples })),
    ],
    targets: rows.map(({ what, samples }) => {
      const times = percentile(samples, 0.99) / quietP99;
      return { claim: `next to one that ${what}: p99 ${times.toFixed(2)} × of a quiet run, at most 2`, kept: times <= 2 };
    }),
    notes: [
      `The hostile sandbox has a limit of ${hostileLimits.cpus} CPU and has been hostile for ${settleMs / 1000} s. The quiet run is interleaved with the hostile ones.`,
    ],
  };
}

async function sampleNext(driver: SandboxDriver, neighbour: Sandbox, command: string): Promise<number[]> {
  await using hostile = await driver.open({ limits: hostileLimits });
  await hostile.runShell(`{ ${command}\n} 2>/dev/null`, { timeoutMs });
  await pause(settleMs);
  return sampleCalls(neighbour, calls);
}

function sampleCalls(sandbox: Sandbox, count: number): Promise<number[]> {
  return sample(count, () => sandbox.runShell(':', { timeoutMs }));
}
