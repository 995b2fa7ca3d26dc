// Measures admission by KV cache in the simulation of an engine: tokens per second, first tokens, waits and whole sessions, with as many agents as
// the cache holds and with up to four times as many, compared with no admission, a fixed cap, and ThunderAgent's rule.

import { longestHoldMs } from '../../packages/worker/src/inference/cache/cache-rule.ts';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import { fixedCap, ours, sticky } from './policies.ts';
import { type KvReport, type KvRun, simulate, type Workload } from './simulation.ts';
import { thunderAgent } from './thunder-agent.ts';
import { h200, longContexts, toolsOf, youngContexts } from './workloads.ts';

const seeds = [1, 2];
const longS = 1800;

const policies = {
  sticky,
  'at most 26 sessions on an engine': fixedCap(26),
  "ThunderAgent's rule": thunderAgent({ hasDecay: true }),
  "ThunderAgent's rule without decay": thunderAgent({ hasDecay: false }),
  Millrace: ours(),
};
const shared = { 'Millrace, four workers': ours({ workers: 4 }), 'Millrace, 32 workers': ours({ workers: 32 }) };

interface KvScene {
  readonly what: string;
  readonly workload: Workload;
  readonly seconds: number;
  readonly engines?: number;
  /** Whether it is also run with several workers, of which each has an account of its own rollouts. */
  readonly isShared?: boolean;
  /** Millrace's tokens per second over those of sticky, at least. */
  readonly least: number;
}

const grouped = { ...longContexts(96), groupSize: 8 };
const scenes: readonly KvScene[] = [
  { what: '24 agents, 8k to 32k', workload: longContexts(24), seconds: longS, least: 0.97 },
  { what: '48 agents, 8k to 32k', workload: longContexts(48), seconds: longS, least: 2.5 },
  { what: '96 agents, 8k to 32k', workload: longContexts(96), seconds: 2 * longS, isShared: true, least: 2.5 },
  { what: '96 agents, 8k to 32k, two engines', workload: longContexts(96), seconds: longS, engines: 2, least: 2.5 },
  { what: '96 agents, 8k to 32k, groups of 8', workload: grouped, seconds: longS, isShared: true, least: 2.5 },
  { what: '40 agents, from 2k, first 90 s', workload: youngContexts(40), seconds: 90, least: 0.97 },
  { what: '80 agents, from 2k, first 90 s', workload: youngContexts(80), seconds: 90, least: 0.97 },
  { what: '160 agents, from 2k, first 90 s', workload: youngContexts(160), seconds: 90, isShared: true, least: 0.97 },
  { what: '48 agents, 8k to 32k, tools of 8 s', workload: longContexts(48, toolsOf(8)), seconds: longS, least: 0.97 },
  { what: '96 agents, 8k to 32k, tools of 20 s', workload: longContexts(96, toolsOf(20)), seconds: longS, isShared: true, least: 0.95 },
  { what: '96 agents, 8k to 32k, tools of 60 s', workload: longContexts(96, toolsOf(60)), seconds: longS, isShared: true, least: 0.97 },
];

/** The scene of which everything is shown. */
const shown = scenes[2]?.what;

export async function runKvBench(): Promise<BenchReport> {
  const found = scenes.map((scene) => ({ scene, runs: runAll(scene) }));
  const rows: BenchRow[] = [];
  for (const { scene, runs } of found) {
    addRows(rows, runs, {
      what: `tokens per second: ${scene.what}`,
      unit: 'tokens/s',
      read: ({ tokensPerS }) => [tokensPerS],
      larger: 'better',
    });
    if ((scene.workload.groupSize ?? 1) > 1)
      addRows(rows, runs, { what: `a whole group: ${scene.what}`, unit: 's', read: ({ groupS }) => groupS });
    if (scene.what !== shown) continue;
    addRows(rows, runs, {
      what: `prompt tokens found in the cache: ${scene.what}`,
      unit: '%',
      read: ({ hitRate }) => [100 * hitRate],
      larger: 'better',
    });
    addRows(rows, runs, { what: `first token after the call: ${scene.what}`, unit: 's', read: ({ firstTokenS }) => firstTokenS });
    addRows(rows, runs, { what: `a whole session: ${scene.what}`, unit: 's', read: ({ sessionS }) => sessionS });
    addRows(rows, runs, { what: `longest wait at a turn boundary: ${scene.what}`, unit: 's', read: ({ holdS }) => [largest(holdS)] });
  }
  return {
    title: 'KV cache: agents whose contexts do not fit, on one simulated H200 with 518k tokens of cache',
    rows,
    targets: found.flatMap(({ scene, runs }) =>
      [...runs.keys()].filter((name) => name.startsWith('Millrace')).flatMap((name) => judge(scene, runs, name)),
    ),
    notes: [
      `Virtual time, ${seeds.length} seeds. The engine has vLLM's mechanism; its speed is that of a 7B-shaped model, within 10 % of nine runs on an H200.`,
    ],
  };
}

/** By the name of the policy. */
type Runs = ReadonlyMap<string, readonly KvReport[]>;

function runAll({ workload, seconds, engines = 1, isShared = false }: KvScene): Runs {
  const run = (policy: KvRun['policy']) => seeds.map((seed) => simulate({ shape: h200, engines, workload, policy, seed, seconds }));
  return new Map(Object.entries({ ...policies, ...(isShared ? shared : {}) }).map(([name, policy]) => [name, run(policy)]));
}

interface Measure extends Pick<BenchRow, 'unit' | 'larger'> {
  readonly what: string;
  readonly read: (report: KvReport) => readonly number[];
}

function addRows(rows: BenchRow[], runs: Runs, { what, unit, read, larger }: Measure): void {
  const base = rows.length;
  for (const [name, reports] of runs) {
    const samples = reports.flatMap((report) => read(report));
    rows.push({ what: `${what}: ${name}`, unit, samples, ...(larger ? { larger } : {}), ...(rows.length > base ? { against: base } : {}) });
  }
}

function judge(scene: KvScene, runs: Runs, name: string): { readonly claim: string; readonly kept: boolean }[] {
  const { least } = scene;
  const what = `${name}, ${scene.what}`;
  const [base, mine] = [runs.get('sticky') ?? [], runs.get(name) ?? []];
  const speed = (reports: readonly KvReport[]) => reports.reduce((sum, { tokensPerS }) => sum + tokensPerS, 0);
  const last = (reports: readonly KvReport[]) =>
    percentile(
      reports.flatMap(({ sessionS }) => sessionS),
      0.99,
    );
  const hold = largest(mine.flatMap(({ holdS }) => holdS));
  const claims = [
    { claim: `${what}: at least ${least} × the tokens per second of sticky`, kept: speed(mine) >= least * speed(base) },
    { claim: `${what}: no wait over ${longestHoldMs / 1000} s`, kept: 1000 * hold <= longestHoldMs },
  ];
  const hasSessions = base.every(({ sessionS }) => sessionS.length > 0);
  return hasSessions
    ? [...claims, { claim: `${what}: p99 of a session at most 1.3 × that of sticky`, kept: last(mine) <= 1.3 * last(base) }]
    : claims;
}

function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
