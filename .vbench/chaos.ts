// `npm run chaos [-- --faults 1000 --seed 7 --store postgres]`: the chaos run at any length. Prints a table of the faults by kind, and exits with 1 if
// anything was lost, doubled, leaked or stuck.

import { parseArgs } from 'node:util';
import { type ChaosReport, type ChaosStore, runChaos } from '@millrace/testkit';

const usage = 'usage: npm run chaos [-- --faults 200] [--seed NUMBER] [--store sqlite|postgres]';
const values = readArguments();
const seed = values.seed ?? Math.floor(Math.random() * 2 ** 31);
console.log(`seed ${seed}`);
const startedAt = performance.now();
const toClock = () => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
const report = await runChaos({
  faults: values.faults,
  seed,
  store: values.store,
  onProgress: (line) => console.error(`${toClock()}: ${line}`),
});
console.log(`\n${renderTable(report)}\n${renderBooks(report)}\nseed ${seed}, ${toClock()}`);
const { lost, doubled, leaked, stuck, wrong } = report;
process.exitCode = [lost, doubled, leaked, stuck, wrong].every(({ length }) => length === 0) ? 0 : 1;

function readArguments(): { readonly faults: number; readonly seed: number | undefined; readonly store: ChaosStore } {
  try {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({
      options: {
        faults: { ...text, default: '200' },
        seed: text,
        store: { ...text, default: 'sqlite' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const [faults, seed] = [Number(values.faults), values.seed === undefined ? undefined : Number(values.seed)];
    if (!Number.isSafeInteger(faults) || faults < 1) throw new Error(`--faults must be a whole number from 1, not ${values.faults}`);
    if (seed !== undefined && !Number.isSafeInteger(seed)) throw new Error(`--seed must be a whole number, not ${values.seed}`);
    const store = (['sqlite', 'postgres'] as const).find((name) => name === values.store);
    if (!store) throw new Error(`--store must be sqlite or postgres, not ${values.store}`);
    return { faults, seed, store };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`);
    process.exit(2);
  }
}

function renderTable({ faults, skipped }: ChaosReport): string {
  const rows = Object.entries(faults).map(([kind, { faults: all, hit }]) => `| ${kind} | ${all} | ${hit} |`);
  const total = Object.values(faults).reduce((sum, { faults: all }) => sum + all, 0);
  const hits = Object.values(faults).reduce((sum, { hit }) => sum + hit, 0);
  const missing = Object.entries(skipped).map(([kind, reason]) => `not on this machine: ${kind}: ${reason}`);
  return ['| fault | caused | seen to hit |', '|---|---|---|', ...rows.sort(), `| all | ${total} | ${hits} |`, ...missing].join('\n');
}

function renderBooks(report: ChaosReport): string {
  const { rollouts, done, verifierTimeouts, attempts, sampledTokens, batches, groups, logged } = report;
  const problems = (['lost', 'doubled', 'leaked', 'stuck', 'wrong'] as const).flatMap((name) => [
    `${report[name].length} ${name}`,
    ...report[name].slice(0, 20).map((line) => `  ${line}`),
  ]);
  return [
    `${rollouts} rollouts: ${done} done, ${verifierTimeouts} ended by a verifier that hung, ${attempts} attempts, ${sampledTokens} sampled tokens checked`,
    `${batches} batches, ${groups} groups delivered`,
    `logged: ${Object.entries(logged)
      .map(([event, count]) => `${event} ${count}`)
      .join(', ')}`,
    ...problems,
  ].join('\n');
}
