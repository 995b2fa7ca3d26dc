// Filling batches for DAPO when half of the prompts are uninformative and rollouts are long-tailed: the service's refill on virtual
// time and in a real run, against sample-filter-repeat, fixed over-sampling and an oracle that knows how far it must sample.

import type { BenchReport, BenchRow } from '../report/report.ts';
import { type Cost, oracle, overSample, sampleFilterRepeat } from './batch-baselines.ts';
import { runRealBatches } from './batch-real.ts';
import { simulateBatches } from './batch-simulation.ts';
import type { World } from './batch-worlds.ts';

const seeds = [101, 102, 103];
const batchesInRow = 3;
const shapes = [
  { target: 16, slots: 64, tail: 'lognormal' },
  { target: 16, slots: 256, tail: 'pareto' },
  { target: 32, slots: 128, tail: 'lognormal' },
] as const;

interface Ratios {
  readonly time: number;
  readonly timeOverSampled: number;
  readonly sampled: number;
  readonly wasted: number;
}

/** Several batches in a row on one stream, compared with the same number from each strategy. */
async function compare(world: World, target: number, series: boolean): Promise<Ratios> {
  const ours = total(await simulateBatches(world, { target, batches: batchesInRow, series }));
  const best = oracle(world, target * batchesInRow, 0);
  return {
    time: ours.seconds / inRow(world, target, sampleFilterRepeat).seconds,
    timeOverSampled: ours.seconds / inRow(world, target, overSample).seconds,
    sampled: ours.rolloutSeconds / best.rolloutSeconds,
    wasted: ours.wastedSeconds / best.wastedSeconds,
  };
}

function inRow(world: World, target: number, strategy: (world: World, target: number, from: number) => Cost): Cost {
  const costs: Cost[] = [];
  for (let from = 0; costs.length < batchesInRow; from = costs.reduce((at, { tasks }) => at + tasks, 0))
    costs.push(strategy(world, target, from));
  return total(costs);
}

function total(costs: readonly Cost[]): Cost {
  const sum = (key: keyof Cost) => costs.reduce((total, cost) => total + cost[key], 0);
  return {
    seconds: sum('seconds'),
    rolloutSeconds: sum('rolloutSeconds'),
    wastedSeconds: sum('wastedSeconds'),
    tokens: sum('tokens'),
    tasks: sum('tasks'),
  };
}

export async function runBatchesBench(): Promise<BenchReport> {
  const rows: BenchRow[] = [];
  const [kept, dropped]: [Ratios[], Ratios[]] = [[], []];
  for (const { target, slots, tail } of shapes) {
    for (const series of [true, false]) {
      const ratios: Ratios[] = [];
      for (const seed of seeds) ratios.push(await compare({ name: tail, slots, seed, tail }, target, series));
      (series ? kept : dropped).push(...ratios);
      const name = `target ${target}, ${slots} slots, ${tail}, ${series ? 'surplus kept' : 'surplus dropped'}`;
      rows.push({ what: `${name}: time / sample-filter-repeat`, unit: 'ratio', samples: ratios.map(({ time }) => time) });
      rows.push({
        what: `${name}: time / over-sampling × 2`,
        unit: 'ratio',
        samples: ratios.map(({ timeOverSampled }) => timeOverSampled),
      });
      rows.push({ what: `${name}: sampled seconds / oracle`, unit: 'ratio', samples: ratios.map(({ sampled }) => sampled) });
      rows.push({ what: `${name}: wasted seconds / oracle`, unit: 'ratio', samples: ratios.map(({ wasted }) => wasted) });
    }
  }
  const real = await runRealBatches();
  rows.push({ what: 'real run: time to fill, sample-filter-repeat', unit: 's', samples: real.repeatSeconds });
  rows.push({ what: 'real run: time to fill, batch', unit: 's', samples: real.batchSeconds, against: rows.length - 1 });
  rows.push({ what: 'real run: sampled seconds / oracle', unit: 'ratio', samples: real.sampled });
  rows.push({ what: 'real run: wasted seconds / oracle', unit: 'ratio', samples: real.wasted });
  return { title: 'Batches: time to fill and what is sampled', rows, targets: makeTargets(kept, dropped, real), notes };
}

function makeTargets(kept: readonly Ratios[], dropped: readonly Ratios[], real: Awaited<ReturnType<typeof runRealBatches>>) {
  const all = [...kept, ...dropped];
  const time = mean(all.map((one) => one.time));
  const [withCarry, without] = [kept, dropped].map((some) => mean(some.map(({ wasted }) => wasted)));
  const realTime = mean(real.batchSeconds) / mean(real.repeatSeconds);
  const realWasted = mean(real.wasted);
  const at = (value = Number.NaN) => value.toFixed(2);
  return [
    { claim: `simulated time to fill ≤ 0.6 × sample-filter-repeat (${at(time)} ×)`, kept: time <= 0.6 },
    { claim: `simulated waste ≤ 1.10 × the oracle's with surplus kept (${at(withCarry)} ×)`, kept: (withCarry ?? 9) <= 1.1 },
    { claim: `simulated waste ≤ 1.10 × the oracle's with surplus dropped (${at(without)} ×)`, kept: (without ?? 9) <= 1.1 },
    { claim: `real time to fill ≤ 0.6 × sample-filter-repeat (${at(realTime)} ×)`, kept: realTime <= 0.6 },
    { claim: `real waste ≤ 1.10 × the oracle's (${at(realWasted)} ×)`, kept: realWasted <= 1.1 },
  ];
}

const notes = [
  `${batchesInRow} batches in a row, groups of 8, seeds ${seeds.join(', ')}; the simulation is the service's own keeper and store on a virtual clock. The oracle knows which task brings the last informative group and samples exactly up to it; a stopped rollout counts up to its stop.`,
];

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
