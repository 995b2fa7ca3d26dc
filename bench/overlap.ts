// Three stages, each with its own slots, against one coupled pool in which a rollout holds its slot from init to evaluate. GPU capacity is
// the scarce resource, so both get the same number of run slots. Durations are long-tailed.

import { setTimeout as pause } from 'node:timers/promises';
import { Slots } from '@millrace/base/slots';
import { Stage } from '@millrace/worker';
import type { BenchReport } from './report/report.ts';

const runSlots = 16;
const rollouts = 320;

interface Times {
  readonly initMs: number;
  readonly runMs: number;
  readonly evaluateMs: number;
}

/** Long-tailed: most near the scale, some several times as long. */
function makeTimes(random: () => number): Times {
  const tailed = (scaleMs: number) => scaleMs * Math.min(6, -Math.log(1 - random()) + 0.2);
  return { initMs: tailed(30), runMs: tailed(60), evaluateMs: tailed(60) };
}

function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const never = new AbortController().signal;

async function runStaged(all: readonly Times[]): Promise<number> {
  const [init, run, evaluate] = [new Stage('init', 16), new Stage('run', runSlots), new Stage('evaluate', 32)];
  const ready = new Slots(32);
  const startedAt = performance.now();
  await Promise.all(
    all.map(async ({ initMs, runMs, evaluateMs }) => {
      const place = await ready.acquire({ signal: never });
      await init.run(() => pause(initMs), { signal: never });
      const inRun = () => {
        place[Symbol.dispose]();
        return pause(runMs);
      };
      await run.run(inRun, { signal: never });
      await evaluate.run(() => pause(evaluateMs), { signal: never });
    }),
  );
  return all.length / ((performance.now() - startedAt) / 1000);
}

async function runCoupled(all: readonly Times[]): Promise<number> {
  const pool = new Slots(runSlots);
  const startedAt = performance.now();
  await Promise.all(
    all.map(async ({ initMs, runMs, evaluateMs }) => {
      using _slot = await pool.acquire({ signal: never });
      await pause(initMs);
      await pause(runMs);
      await pause(evaluateMs);
    }),
  );
  return all.length / ((performance.now() - startedAt) / 1000);
}

export async function runOverlapBench(): Promise<BenchReport> {
  const coupled: number[] = [];
  const staged: number[] = [];
  for (let seed = 1; seed <= 5; seed += 1) {
    const random = makeRandom(seed);
    const all = Array.from({ length: rollouts }, () => makeTimes(random));
    coupled.push(await runCoupled(all));
    staged.push(await runStaged(all));
  }
  const gains = staged.map((rate, index) => rate / (coupled[index] ?? Number.NaN));
  const worst = Math.min(...gains);
  return {
    title: 'Stage overlap: rollouts per second with slow evaluations',
    rows: [
      { what: `one coupled pool of ${runSlots}`, unit: 'rollouts/s', samples: coupled, larger: 'better' },
      { what: `three stages, ${runSlots} in run`, unit: 'rollouts/s', samples: staged, larger: 'better', against: 0 },
    ],
    targets: [
      { claim: `three stages ≥ 1.5 × the coupled pool (worst of ${gains.length} seeds: ${worst.toFixed(2)} ×)`, kept: worst >= 1.5 },
    ],
    notes: [`${rollouts} rollouts per seed; the real stage classes, with timers instead of sandboxes and models.`],
  };
}
