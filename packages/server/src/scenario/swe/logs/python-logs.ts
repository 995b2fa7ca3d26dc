// Logs of Python's other test runners: unittest in the form of Django's runner, and SymPy's own.

import { type LogParser, type TestStatus, wordsOf } from './test-status.ts';

const okEnds = [' ... ok', ' ... OK', ' ...  OK'];
const migration = 'Applying sites.0002_alter_domain_unique...test_no_migrations';

/** Output of a test that stands between its name and its `ok`. */
const interrupted: readonly RegExp[] = [
  /^(.*?)\s\.\.\.\sTesting against Django installed in [\s\S]*? silenced\)\.\nok$/gm,
  /^(.*?)\s\.\.\.\sInternal Server Error: \/.*\/\nok$/gm,
  /^(.*?)\s\.\.\.\sSystem check identified no issues \(0 silenced\)\nok$/gm,
];

/** `test_a (pkg.tests.ATests) ... ok`, also with output of the test between the dots and the `ok`. */
export const parseDjango: LogParser = (log) => {
  const statuses = new Map<string, TestStatus>();
  let previous: string | undefined;
  for (const raw of log.split('\n')) {
    const line = raw.trim();
    if (line.includes('--version is equivalent to version')) statuses.set('--version is equivalent to version', 'PASSED');
    if (line.includes(' ... ')) previous = line.split(' ... ')[0];
    for (const [name, status] of readDjangoLine(line)) statuses.set(name, status);
    if (line.startsWith('ok') && previous !== undefined) statuses.set(previous, 'PASSED');
  }
  for (const pattern of interrupted) for (const [, name = ''] of log.matchAll(pattern)) statuses.set(name, 'PASSED');
  return statuses;
};

function* readDjangoLine(line: string): Generator<readonly [string, TestStatus]> {
  const ok = okEnds.find((end) => line.endsWith(end));
  if (ok !== undefined) yield [nameBefore(line, ok), 'PASSED'];
  if (line.includes(' ... skipped')) yield [line.split(' ... skipped')[0] ?? '', 'SKIPPED'];
  if (line.endsWith(' ... FAIL')) yield [line.split(' ... FAIL')[0] ?? '', 'FAILED'];
  const [first, second = ''] = wordsOf(line);
  if (first?.startsWith('FAIL:')) yield [second, 'FAILED'];
  if (line.endsWith(' ... ERROR')) yield [line.split(' ... ERROR')[0] ?? '', 'ERROR'];
  if (first?.startsWith('ERROR:')) yield [second, 'ERROR'];
}

/** A migration prints its progress without a line break before the first test. */
function nameBefore(line: string, end: string): string {
  const whole = line.startsWith(migration) ? line.slice(line.indexOf('...') + 3).trim() : line;
  return whole.slice(0, whole.lastIndexOf(end));
}

/** `test_a ok`, `test_b F`; failed tests also have a heading with the name of their file. */
export const parseSympy: LogParser = (log) => {
  const statuses = new Map<string, TestStatus>();
  for (const [, path = '', name = ''] of log.matchAll(/_* (.*)\.py:(.*) _*/g)) statuses.set(`${path}.py:${name}`, 'FAILED');
  const ends = { E: 'ERROR', F: 'FAILED', ok: 'PASSED' } as const;
  for (const raw of log.split('\n')) {
    const line = raw.trim();
    const [, end] = / (E|F|ok)$/.exec(line) ?? [];
    if (line.startsWith('test_') && (end === 'E' || end === 'F' || end === 'ok')) statuses.set(wordsOf(line)[0] ?? '', ends[end]);
  }
  return statuses;
};
