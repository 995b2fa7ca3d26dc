// The test run of `npm run test:world`, started by scripts/world.ts once the engines are up. A test that is skipped has failed; one that is
// marked as a known defect may fail.

import { relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { openFileLimit } from './file-limit.ts';

const { values, positionals: given } = parseArgs({
  allowPositionals: true,
  options: {
    /** The slowest file, which records everything again, takes a few minutes on two idle cores; a busy machine takes many times as long. */
    'file-limit-s': { type: 'string', default: '2400' },
  },
});

const failures = await runTests(given.length > 0 ? given : ['world/**/*.test.ts'], Number(values['file-limit-s']) * 1000);
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);

/** One file after the other, because they share the engines. Returns what went wrong. */
async function runTests(globPatterns: string[], limitMs: number): Promise<string[]> {
  using limit = openFileLimit(limitMs);
  const counts = { passed: 0, failed: 0, open: 0 };
  const early: string[] = [];
  const stream = run({ globPatterns, concurrency: 1, timeout: limitMs });
  stream.on('test:pass', ({ name, file, skip, todo, details }) => {
    if (skip !== undefined) counts.failed += 1;
    else if (details.type !== 'suite') counts.passed += 1;
    if (todo !== undefined && skip === undefined) early.push(`${relative('.', file ?? '')}: ${name}`);
  });
  stream.on('test:fail', ({ todo }) => {
    if (todo === undefined) counts.failed += 1;
    else counts.open += 1;
  });
  for await (const text of stream.compose(new spec())) process.stdout.write(text);
  if (counts.open > 0) console.log(`ℹ ${counts.open} tests of known defects fail, as marked`);
  for (const one of early) console.log(`ℹ passes although it is marked as a known defect; remove the mark: ${one}`);
  return [
    ...limit.killed.map((file) => `${relative('.', file)} took more than ${limitMs / 1000} s and was killed`),
    ...(counts.failed > 0 ? [`${counts.failed} tests failed or were skipped`] : []),
    ...(counts.failed === 0 && counts.passed === 0 ? ['no test was run'] : []),
  ];
}
