// The test command: format and lint, types, then every test. Fails if anything fails; with CI=true or --no-skips also if a test was
// skipped. A test file that runs longer than its limit is killed and fails.

import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { openFileLimit } from './file-limit.ts';

const allTests = ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts', 'bench/**/*.test.ts'];

const { values, positionals: given } = parseArgs({
  allowPositionals: true,
  options: {
    'no-skips': { type: 'boolean', default: process.env.CI === 'true' },
    /** Ten minutes are five times what the slowest file takes on two idle cores. */
    'file-limit-s': { type: 'string', default: '600' },
  },
});
// Hundreds of processes load the same modules: compiling each once saves a third of the time.
process.env.NODE_COMPILE_CACHE ??= resolve('node_modules/.cache/compile');
const checks = given.length > 0 ? [] : [...runTool('format and lint', ['biome', 'check', '.']), ...runTool('types', ['tsc', '--noEmit'])];
const failures = [...checks, ...(await runTests(given.length > 0 ? given : allTests, Number(values['file-limit-s']) * 1000))];
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);

function runTool(what: string, [program = '', ...args]: readonly string[]): string[] {
  const startedAt = performance.now();
  const { status } = spawnSync(`node_modules/.bin/${program}`, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  console.log(`${status === 0 ? '✔' : '✖'} ${what} (${program}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  return status === 0 ? [] : [`${what}: ${program} ${args.join(' ')} failed`];
}

/** Runs each file in its own process, three at once even on two cores because many wait, and returns what went wrong. */
async function runTests(globPatterns: string[], limitMs: number): Promise<string[]> {
  using limit = openFileLimit(limitMs);
  const skipped: string[] = [];
  let passed = 0;
  let failed = 0;
  const stream = run({ globPatterns, concurrency: Math.max(3, Math.floor(availableParallelism() / 2)), timeout: limitMs });
  stream.on('test:pass', ({ name, file, skip, details }) => {
    if (skip !== undefined) skipped.push(`${relative('.', file ?? '')}: ${name}${typeof skip === 'string' ? ` (${skip})` : ''}`);
    else if (details.type !== 'suite') passed += 1;
  });
  stream.on('test:fail', () => {
    failed += 1;
  });
  for await (const text of stream.compose(new spec())) process.stdout.write(text);
  return [
    ...limit.killed.map((file) => `${relative('.', file)} took more than ${limitMs / 1000} s and was killed`),
    ...(failed > 0 ? [`${failed} tests failed`] : []),
    ...(failed === 0 && passed === 0 ? ['no test was run'] : []),
    ...(values['no-skips'] ? skipped.map((one) => `skipped, and skips are refused here: ${one}`) : []),
  ];
}
