// The test command: format and lint, types, then every test. Fails if anything fails; with CI=true or --no-skips also if a
// test was skipped, by its name.

import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';

const globPatterns = ['packages/*/test/**/*.test.ts', 'test/*.test.ts', 'examples/**/*.test.ts', 'bench/**/*.test.ts'];

const { values } = parseArgs({ options: { 'no-skips': { type: 'boolean', default: process.env.CI === 'true' } } });
const failures = [...runTool('format and lint', ['biome', 'check', '.']), ...runTool('types', ['tsc', '--noEmit'])];
failures.push(...(await runTests(values['no-skips'])));
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);

function runTool(what: string, [program = '', ...args]: readonly string[]): string[] {
  const startedAt = performance.now();
  const { status } = spawnSync(`node_modules/.bin/${program}`, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  console.log(`${status === 0 ? '✔' : '✖'} ${what} (${program}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  return status === 0 ? [] : [`${what}: ${program} ${args.join(' ')} found something`];
}

/** Runs each file in a process of its own, and answers what is wrong with the whole. */
async function runTests(refuseSkips: boolean): Promise<string[]> {
  const skipped: string[] = [];
  let passed = 0;
  let failed = 0;
  const stream = run({ globPatterns, concurrency: Math.max(2, Math.floor(availableParallelism() / 2)) });
  stream.on('test:pass', ({ name, file, skip, details }) => {
    if (skip !== undefined) skipped.push(`${relative('.', file ?? '')}: ${name}${typeof skip === 'string' ? ` (${skip})` : ''}`);
    else if (details.type !== 'suite') passed += 1;
  });
  stream.on('test:fail', () => {
    failed += 1;
  });
  for await (const text of stream.compose(new spec())) process.stdout.write(text);
  const refused = refuseSkips ? skipped.map((one) => `skipped, and skips are refused here: ${one}`) : [];
  if (failed > 0) return [`${failed} tests failed`, ...refused];
  return passed === 0 ? ['no test was run', ...refused] : refused;
}
