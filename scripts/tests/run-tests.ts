// Runs test files, each in its own process with a time limit, and returns what went wrong. For both test tiers.

import { globSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { openFileLimit } from './file-limit.ts';

interface TestRunOptions {
  readonly concurrency: number;
  /** Files that take long, the longest first. They are started first, so that none of them runs alone at the end. */
  readonly slowFiles?: readonly string[];
  readonly limitMs: number;
  /** Whether a test that is skipped has failed. */
  readonly refuseSkips: boolean;
}

/** A bad moment of a busy machine hits those that run in it. More than these have another cause. */
const mostRepeated = 6;

/** Runs the files; up to six that fail are run once more, on their own, and named. */
export async function runWithRepeat(globPatterns: readonly string[], options: TestRunOptions): Promise<readonly string[]> {
  const first = await runTests(globPatterns, options);
  if (first.files.length === 0 || first.files.length > mostRepeated) return first.failures;
  console.log(`ℹ failed, and run once more: ${first.files.join(', ')}`);
  const second = await runTests(first.files, { ...options, concurrency: 1 });
  for (const file of first.files) if (!second.files.includes(file)) console.log(`ℹ passed only at the second try: ${file}`);
  return second.failures;
}

interface RunOutcome {
  readonly failures: readonly string[];
  /** The files with a failure. */
  readonly files: readonly string[];
}

/** A test that is marked as a known defect may fail. */
export async function runTests(globPatterns: readonly string[], options: TestRunOptions): Promise<RunOutcome> {
  const { concurrency, limitMs, refuseSkips, slowFiles = [] } = options;
  using limit = openFileLimit(limitMs);
  const files = new Set<string>();
  const skipped: string[] = [];
  const early: string[] = [];
  const counts = { passed: 0, failed: 0, open: 0 };
  const times: FileTime[] = [];
  const stream = run({ files: orderFiles(globSync(globPatterns), slowFiles), concurrency, timeout: limitMs });
  stream.on('test:pass', (event) => {
    const { name, skip, todo, details } = event;
    const title = `${nameFile(event)}: ${name}`;
    if (skip !== undefined) {
      skipped.push(`${title}${typeof skip === 'string' ? ` (${skip})` : ''}`);
      if (refuseSkips) files.add(nameFile(event));
    } else if (todo !== undefined) early.push(title);
    else if (details.type !== 'suite') counts.passed += 1;
  });
  stream.on('test:fail', (event) => {
    if (event.todo !== undefined) counts.open += 1;
    else {
      counts.failed += 1;
      files.add(nameFile(event));
    }
  });
  stream.on('test:summary', ({ file, duration_ms: ms }) => {
    if (file !== undefined) times.push({ file: relative('.', file), ms });
  });
  for await (const text of stream.compose(new spec())) process.stdout.write(text);
  if (times.length > mostNamed) console.log(`ℹ slowest files: ${describeSlowest(times)}`);
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

/** The file that was run. `file` is where the test is defined: for one of a shared suite, another file. */
function nameFile({ file = '', entryFile = file }: { readonly file?: string; readonly entryFile?: string }): string {
  return relative('.', entryFile);
}

/** Those of `slowFiles` in their order, then the others by name. */
export function orderFiles(files: readonly string[], slowFiles: readonly string[]): string[] {
  const slow = slowFiles.map((file) => resolve(file));
  const rank = (file: string) => (slow.includes(file) ? slow.indexOf(file) : slow.length);
  return [...new Set(files.map((file) => resolve(file)))].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

interface FileTime {
  readonly file: string;
  readonly ms: number;
}

const mostNamed = 10;

function describeSlowest(times: readonly FileTime[]): string {
  const slowest = times.toSorted((a, b) => b.ms - a.ms).slice(0, mostNamed);
  return slowest.map(({ file, ms }) => `${file} ${(ms / 1000).toFixed(0)} s`).join(', ');
}
