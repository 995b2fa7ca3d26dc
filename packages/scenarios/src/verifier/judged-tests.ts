// Runs hidden tests in the sandbox of judged programs. The agent's code runs in their process, so neither the exit code nor the output counts:
// a test passed if the test runner reported so with a key, and the runner ended as it should.

import { randomBytes } from 'node:crypto';
import type { ExecOptions, ExecResult, Sandbox } from '@millrace/sandbox';
import { readRecords, type TestRunner } from './reporter.ts';
import { renderSiteSource, reporterSource } from './reporter-source.ts';

const maxRecordBytes = 32 << 20;
const runners: readonly TestRunner[] = ['pytest', 'unittest'];

/** Prints a line for each test, its status first. The exit code is 0 if there was a test, all of them passed, and none ended the runner. */
export async function runJudgedTests(sandbox: Sandbox, argv: readonly string[], options: ExecOptions): Promise<JudgedEnd> {
  const { signal } = options;
  const optional = signal ? { signal } : {};
  const [key, name] = [randomBytes(24).toString('hex'), `millrace_${randomBytes(6).toString('hex')}`];
  const folder = `/tmp/${name}`;
  await sandbox.writeFile(`${folder}/${name}.py`, reporterSource, optional);
  await sandbox.writeFile(`${folder}/sitecustomize.py`, renderSiteSource(name), optional);
  await sandbox.writeFile(`${folder}/key`, key, { mode: 0o600, ...optional });
  const env = {
    ...options.env,
    PYTHONPATH: [folder, options.env?.PYTHONPATH].filter(Boolean).join(':'),
    PYTEST_ADDOPTS: `-p ${name} -p no:cacheprovider`,
    PYTHONDONTWRITEBYTECODE: '1',
  };
  const { stdout, stderr } = await sandbox.exec(argv, { ...options, env });
  const records = await sandbox.readFile(`${folder}/records`, { maxBytes: maxRecordBytes, ...optional }).catch(() => Buffer.alloc(0)); // none were written
  const text = records.toString('latin1');
  const attested = runners.map((runner) => readRecords(text, key, runner)).filter(({ started }) => started);
  const lines = attested.flatMap((one) => one.lines.map(toStatusFirst));
  const isRight =
    attested.length > 0 &&
    attested.every(({ ended }) => ended) &&
    lines.some(isPassed) &&
    lines.every((line) => isPassed(line) || isSkipped(line));
  return {
    exitCode: isRight ? 0 : 1,
    stdout: Buffer.from(lines.map((line) => `${line}\n`).join('')),
    stderr: Buffer.concat([stderr, stdout]),
  };
}

const isPassed = (line: string): boolean => line.startsWith('PASSED ');
const isSkipped = (line: string): boolean => /^(SKIPPED|XFAIL) /.test(line);

const unittestWords: Readonly<Record<string, string>> = {
  ok: 'PASSED',
  FAIL: 'FAILED',
  ERROR: 'ERROR',
  skipped: 'SKIPPED',
  'expected failure': 'XFAIL',
};

/** unittest writes `test_add (tests.TestAdd) ... ok`. */
function toStatusFirst(line: string): string {
  const at = line.lastIndexOf(' ... ');
  const word = at < 0 ? undefined : unittestWords[line.slice(at + 5)];
  return word === undefined ? line : `${word} ${line.slice(0, at)}`;
}

export type JudgedEnd = Pick<ExecResult, 'exitCode' | 'stdout' | 'stderr'>;
