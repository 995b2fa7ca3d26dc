// How long a cancel takes to end a rollout, for each thing that a rollout may wait for. The baseline is the same service's answer to a
// cancel of a rollout that is queued, which only the store has to end.

import { cancelCases } from '../packages/worker/test/pipeline/cancel-cases.ts';
import { shell, WorkerBed } from '../packages/worker/test/pipeline/worker-bed.ts';
import type { BenchReport } from './report/report.ts';

const rounds = 5;
const tombstoneMs = 1000;

export async function runCancelBench(): Promise<BenchReport> {
  const queued = await repeat(measureQueued);
  const cases: { readonly where: string; readonly samples: readonly number[] }[] = [];
  for (const one of cancelCases) cases.push({ where: one[0], samples: await repeat(() => measureRunning(one)) });
  const worst = Math.max(...cases.flatMap(({ samples }) => samples));
  return {
    title: 'Cancel: from the call to the end of the rollout',
    rows: [
      { what: 'a rollout that is queued', unit: 'ms', samples: queued },
      ...cases.map(({ where, samples }) => ({ what: `in ${where}`, unit: 'ms', samples, against: 0 })),
    ],
    targets: [{ claim: `a cancel takes effect within a second (longest: ${worst.toFixed(0)} ms)`, kept: worst < 1000 }],
    notes: ['One worker and one rollout at a time, in real sandboxes, with a fake backend.'],
  };
}

async function repeat(measure: () => Promise<number>): Promise<number[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round += 1) samples.push(await measure());
  return samples;
}

async function measureRunning([, state, open]: (typeof cancelCases)[number]): Promise<number> {
  const { bed, input } = await open();
  await using _bed = bed;
  await bed.startWorker();
  const id = await bed.submit(input);
  await bed.reach(id, state);
  const askedAt = performance.now();
  await bed.store.cancel(id, { tombstoneMs });
  await bed.ended(id);
  return performance.now() - askedAt;
}

async function measureQueued(): Promise<number> {
  await using bed = await WorkerBed.open();
  const id = await bed.submit(shell('queued'));
  const askedAt = performance.now();
  await bed.store.cancel(id, { tombstoneMs });
  await bed.ended(id);
  return performance.now() - askedAt;
}
