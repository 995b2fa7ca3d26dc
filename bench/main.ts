// `npm run bench [-- name …] [--write]`: runs the benchmarks and prints each with its baseline; --write saves what ran to
// docs/benchmarks.md. Exits with 1 if a target was missed. With --against, each also runs in another checkout, and their figures are compared.

import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { runAgainst } from './report/against.ts';
import { replaceSections } from './report/page.ts';
import { type BenchReport, renderReport } from './report/report.ts';

const benches: Readonly<Record<string, () => Promise<BenchReport>>> = {
  shell: async () => (await import('./sandbox/shell.ts')).runShellBench(),
  ipython: async () => (await import('./sandbox/ipython.ts')).runIpythonBench(),
  apptainer: async () => (await import('./sandbox/apptainer.ts')).runApptainerBench(),
  'sandbox-density': async () => (await import('./sandbox/sandbox-density.ts')).runSandboxDensityBench(),
  neighbours: async () => (await import('./sandbox/neighbours.ts')).runNeighboursBench(),
  'rollout-cost': async () => (await import('./sandbox/rollout-cost.ts')).runRolloutCostBench(),
  continue: async () => (await import('./continue/continue.ts')).runContinueBench(),
  forks: async () => (await import('./sandbox/forks.ts')).runForksBench(),
  store: async () => (await import('./store.ts')).runStoreBench(),
  'store-engines': async () => (await import('./store-engines.ts')).runStoreEnginesBench(),
  claims: async () => (await import('./cluster/claims.ts')).runClaimsBench(),
  nodes: async () => (await import('./cluster/nodes.ts')).runNodesBench(),
  machines: async () => (await import('./cluster/machines.ts')).runMachinesBench(),
  'store-cost': async () => (await import('./cluster/store-cost.ts')).runStoreCostBench(),
  history: async () => (await import('./history.ts')).runHistoryBench(),
  'request-build': async () => (await import('./turns/request-build.ts')).runRequestBuildBench(),
  'turn-cost': async () => (await import('./turns/turn-cost.ts')).runTurnCostBench(),
  tokenizer: async () => (await import('./turns/tokenizer.ts')).runTokenizerBench(),
  reasoning: async () => (await import('./turns/reasoning.ts')).runReasoningBench(),
  cancel: async () => (await import('./cancel.ts')).runCancelBench(),
  overlap: async () => (await import('./overlap.ts')).runOverlapBench(),
  'reply-cost': async () => (await import('./turns/reply-cost.ts')).runReplyCostBench(),
  'service-cost': async () => (await import('./turns/service-cost.ts')).runServiceCostBench(),
  gateway: async () => (await import('./gateway/gateway.ts')).runGatewayBench(),
  'gateway-sessions': async () => (await import('./gateway/gateway-sessions.ts')).runGatewaySessionsBench(),
  identity: async () => (await import('./identity/identity.ts')).runIdentityBench(),
  routing: async () => (await import('./routing/routing.ts')).runRoutingBench(),
  kv: async () => (await import('./kv/kv.ts')).runKvBench(),
  batches: async () => (await import('./batches/batches.ts')).runBatchesBench(),
  delivery: async () => (await import('./batches/delivery.ts')).runDeliveryBench(),
  'code-grading': async () => (await import('./graders/code-grading.ts')).runCodeGradingBench(),
  freeze: async () => (await import('./graders/freeze.ts')).runFreezeBench(),
  'swe-evaluate': async () => (await import('./graders/swe-evaluate.ts')).runSweEvaluateBench(),
  verdicts: async () => (await import('./verdicts/verdicts.ts')).runVerdictsBench(),
  dashboard: async () => (await import('./dashboard/dashboard.ts')).runDashboardBench(),
  capacity: async () => (await import('./capacity.ts')).runCapacityBench('plain'),
  'capacity-sandboxes': async () => (await import('./capacity.ts')).runCapacityBench('sandboxes'),
};

const usage = `usage: npm run bench [-- NAME … [--write]]
       npm run bench -- [NAME …] --against FOLDER [--rounds N] [--at-once]

Runs all benchmarks, or those named, and prints each with its baseline. Exits with 1 if a target was missed.

  --write            save the reports of those that ran to docs/benchmarks.md
  --against FOLDER   run each in turns here and in another checkout, after npm ci there, and print both
  --rounds N         how often, for --against (3)
  --at-once          for --against: both at the same time instead, so that both are disturbed alike; needs a free core
  --help             print this

benchmarks: ${Object.keys(benches).join(', ')}`;

const { values, positionals } = readArguments();
if (values.help) {
  console.log(usage);
  process.exit(0);
}

const machine = `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
const written = `On ${machine}, ${new Date().toISOString().slice(0, 10)}`;
const sections = new Map<string, string>();
for (const [name, run] of Object.entries(benches)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  if (values.against) {
    console.log(await runAgainst(name, { folder: values.against, rounds: Number(values.rounds), isAtOnce: values['at-once'] }));
    continue;
  }
  console.error(`running ${name} …`);
  const report = await run();
  const section = renderReport(report, `${written}: \`npm run bench -- ${name}\``);
  console.log(section);
  sections.set(name, section);
  if (report.targets?.some(({ kept }) => !kept)) process.exitCode = 1;
}
if (values.write) {
  const page = new URL('../docs/benchmarks.md', import.meta.url);
  await writeFile(page, replaceSections(await readFile(page, 'utf8'), sections, Object.keys(benches)));
}
// Open keep-alive sockets must not delay the exit.
process.exit();

function readArguments() {
  const flag = { type: 'boolean', default: false } as const;
  try {
    const found = parseArgs({
      options: {
        write: flag,
        against: { type: 'string' },
        rounds: { type: 'string', default: '3' },
        'at-once': flag,
        help: { ...flag, short: 'h' },
      },
      allowPositionals: true,
    });
    const unknown = found.positionals.filter((name) => !Object.hasOwn(benches, name));
    if (unknown.length > 0) throw new Error(`no benchmark is named ${unknown.join(', ')}`);
    if (!(Number(found.values.rounds) >= 1)) throw new Error(`--rounds is a number, at least 1, not ${found.values.rounds}`);
    return found;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${usage}`);
    process.exit(2);
  }
}
