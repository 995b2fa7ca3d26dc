// Runs test files, each in its own process with a time limit, and returns what went wrong. For both test tiers.

import { relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { openFileLimit } from './file-limit.ts';

export interface TestRunOptions {
  readonly concurrency: number;
  readonly limitMs: number;
  /** Whether a test that is skipped has failed. */
  readonly refuseSkips: boolean;
}

/** More than these are no bad moment of a busy machine. */
const mostRepeated = 3;

/** Runs the files; up to three that fail are run once more, on their own, and named. */
export async function runWithRepeat(globPatterns: readonly string[], options: TestRunOptions): Promise<readonly string[]> {
  const first = await runTests(globPatterns, options);
  if (first.files.length === 0 || first.files.length > mostRepeated) return first.failures;
  console.log(`ℹ failed, and run once more: ${first.files.join(', ')}`);
  const second = await runTests(first.files, { ...options, concurrency: 1 });
  for (const file of first.files) if (!second.files.includes(file)) console.log(`ℹ passed only at the second try: ${file}`);
  return second.failures;
}

interface TestRun {
  readonly failures: readonly string[];
  /** The files with a failure. */
  readonly files: readonly string[];
}

/** A test that is marked as a known defect may fail. */
export async function runTests(globPatterns: readonly string[], options: TestRunOptions): Promise<TestRun> {
  const { concurrency, limitMs, refuseSkips } = options;
  using limit = openFileLimit(limitMs);
  const files = new Set<string>();
  const skipped: string[] = [];
  const early: string[] = [];
  const counts = { passed: 0, failed: 0, open: 0 };
  const stream = run({ globPatterns: [...globPatterns], concurrency, timeout: limitMs });
  stream.on('test:pass', ({ name, file = '', skip, todo, details }) => {
    const title = `${relative('.', file)}: ${name}`;
    if (skip !== undefined) {
      skipped.push(`${title}${typeof skip === 'string' ? ` (${skip})` : ''}`);
      if (refuseSkips) files.add(relative('.', file));
    } else if (todo !== undefined) early.push(title);
    else if (details.type !== 'suite') counts.passed += 1;
  });
  stream.on('test:fail', ({ todo, file = '' }) => {
    if (todo !== undefined) counts.open += 1;
    else {
      counts.failed += 1;
      files.add(relative('.', file));
    }
  });
  for await (const text of stream.compose(new spec())) process.stdout.write(text);
  if (counts.open > 0) console.log(`ℹ ${counts.open} tests of known defects fail, as marked`);
  for (const one of early) console.log(`ℹ passes although it is marked as a known defect; remove the mark: ${one}`);
  const failures = [
    ...limit.killed.map((file) => `${relative('.', file)} took more than ${limitMs / 1000} s and was killed`),
    ...(counts.failed > 0 ? [`${counts.failed} tests failed`] : []),
    ...(counts.failed + counts.passed + counts.open === 0 ? ['no test was run'] : []),
    ...(refuseSkips ? skipped.map((one) => `skipped, and skips are refused here: ${one}`) : []),
  ];
  return { failures, files: [...files] };
}
