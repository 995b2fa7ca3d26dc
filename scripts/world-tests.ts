// The test run of `npm run test:world`, started by scripts/world.ts once the engines are up. A test that is skipped has failed; one that is
// marked as a known defect may fail. Real engines on a busy machine have bad moments: a file that fails is run once more, and named.

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

const limitMs = Number(values['file-limit-s']) * 1000;
/** More than these are no bad moment. */
const mostRepeated = 3;
const first = await runTests(given.length > 0 ? given : ['world/**/*.test.ts'], limitMs);
const mayRepeat = first.files.length > 0 && first.files.length <= mostRepeated;
const { failures } = mayRepeat ? await repeat(first.files) : first;
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);

async function repeat(files: readonly string[]): Promise<WorldRun> {
  console.log(`ℹ failed, and run once more: ${files.join(', ')}`);
  const second = await runTests([...files], limitMs);
  for (const file of files) if (!second.files.includes(file)) console.log(`ℹ passed only at the second try: ${file}`);
  return second;
}

interface WorldRun {
  /** What went wrong. */
  readonly failures: readonly string[];
  /** The files with a failure. */
  readonly files: readonly string[];
}

/** One file after the other, because they share the engines. */
async function runTests(globPatterns: string[], limitMs: number): Promise<WorldRun> {
  using limit = openFileLimit(limitMs);
  const files = new Set<string>();
  const counts = { passed: 0, failed: 0, open: 0 };
  const early: string[] = [];
  const stream = run({ globPatterns, concurrency: 1, timeout: limitMs });
  stream.on('test:pass', ({ name, file, skip, todo, details }) => {
    if (skip !== undefined) {
      counts.failed += 1;
      files.add(relative('.', file ?? ''));
    } else if (details.type !== 'suite') counts.passed += 1;
    if (todo !== undefined && skip === undefined) early.push(`${relative('.', file ?? '')}: ${name}`);
  });
  stream.on('test:fail', ({ todo, file }) => {
    if (todo !== undefined) counts.open += 1;
    else {
      counts.failed += 1;
      files.add(relative('.', file ?? ''));
    }
  });
  for await (const text of stream.compose(new spec())) process.stdout.write(text);
  if (counts.open > 0) console.log(`ℹ ${counts.open} tests of known defects fail, as marked`);
  for (const one of early) console.log(`ℹ passes although it is marked as a known defect; remove the mark: ${one}`);
  const failures = [
    ...limit.killed.map((file) => `${relative('.', file)} took more than ${limitMs / 1000} s and was killed`),
    ...(counts.failed > 0 ? [`${counts.failed} tests failed or were skipped`] : []),
    ...(counts.failed === 0 && counts.passed === 0 ? ['no test was run'] : []),
  ];
  return { failures, files: [...files] };
}
