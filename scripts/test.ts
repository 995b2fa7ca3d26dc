// The test command: format and lint, types, then every test. Fails if anything fails; with CI=true or --no-skips also if a test was
// skipped. A test file that runs longer than its limit is killed and fails. In CI, up to six files that fail are run once more, and named.

import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runTests, runWithRepeat } from './tests/run-tests.ts';
import { slowFiles } from './tests/slow-files.ts';

const allTests = ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts', 'bench/**/*.test.ts'];

const isCi = process.env.CI === 'true';
const { values, positionals: given } = parseArgs({
  allowPositionals: true,
  options: {
    'no-skips': { type: 'boolean', default: isCi },
    repeat: { type: 'boolean', default: isCi },
    /** Ten minutes are five times what the slowest file takes on two idle cores. */
    'file-limit-s': { type: 'string', default: '600' },
  },
});
// Hundreds of processes load the same modules: compiling each once saves a third of the time.
process.env.NODE_COMPILE_CACHE ??= resolve('node_modules/.cache/compile');
const checks =
  given.length > 0
    ? []
    : [
        ...runTool('format and lint', ['biome', 'check', '.']),
        ...runTool('types', ['tsc', '--noEmit']),
        ...runTool('types of the dashboard', ['tsc', '--noEmit', '-p', 'packages/dashboard']),
      ];
const files = given.length > 0 ? given : allTests;
const options = {
  // Even on two cores, because many files wait. The share of idle time, printed at the end, says whether it is the right number.
  concurrency: Math.max(4, Math.floor(availableParallelism() / 2)),
  slowFiles,
  limitMs: Number(values['file-limit-s']) * 1000,
  refuseSkips: values['no-skips'],
};
const before = readProcessors();
const failures = [...checks, ...(values.repeat ? await runWithRepeat(files, options) : (await runTests(files, options)).failures)];
const after = readProcessors();
const idle = (after.idle - before.idle) / (after.total - before.total);
if (given.length === 0)
  console.log(`ℹ ${options.concurrency} files at once; the processors were idle for ${(100 * idle).toFixed(0)} % of the time`);
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);

function runTool(what: string, [program = '', ...args]: readonly string[]): string[] {
  const startedAt = performance.now();
  const { status } = spawnSync(`node_modules/.bin/${program}`, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  console.log(`${status === 0 ? '✔' : '✖'} ${what} (${program}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  return status === 0 ? [] : [`${what}: ${program} ${args.join(' ')} failed`];
}

/** The time of all processors of the machine since it started. */
function readProcessors(): { readonly idle: number; readonly total: number } {
  const times = cpus().map((one) => one.times);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return { idle: sum(times.map(({ idle }) => idle)), total: sum(times.flatMap((one) => Object.values(one))) };
}
