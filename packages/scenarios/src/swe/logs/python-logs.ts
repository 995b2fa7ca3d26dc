// Logs of Python's other test runners: unittest in the form of Django's runner, and SymPy's own.

import { type LogParser, Statuses, type TestStatus, wordsOf } from './test-status.ts';

const okEnds = [' ... ok', ' ... OK', ' ...  OK'];
const migration = 'Applying sites.0002_alter_domain_unique...test_no_migrations';

/** `test_a (pkg.tests.ATests) ... ok`, also with output of the test between the dots and the `ok`. */
export const parseDjango: LogParser = (log) => {
  const statuses = new Statuses();
  let previous: string | undefined;
  for (const raw of log.split('\n')) {
    const line = raw.trim();
    if (line.includes('--version is equivalent to version')) statuses.set('--version is equivalent to version', 'PASSED');
    if (line.includes(' ... ')) previous = line.split(' ... ')[0];
    for (const [name, status] of readDjangoLine(line)) statuses.set(name, status);
    if (line.startsWith('ok') && previous !== undefined) statuses.set(previous, 'PASSED');
  }
  for (const name of [...namesBeforeSetup(log), ...namesBeforeLine(log)]) statuses.set(name, 'PASSED');
  return statuses;
};

/** Tests whose name and `ok` stand around the output that Django's runner writes when it sets up a database. */
function* namesBeforeSetup(log: string): Generator<string> {
  const [start, end] = [' ... Testing against Django installed in ', ' silenced).\nok'];
  for (let at = log.indexOf(start); at >= 0; ) {
    const endAt = log.indexOf(end, at + start.length);
    if (endAt < 0) return;
    const after = endAt + end.length;
    if (after === log.length || log[after] === '\n') yield log.slice(log.lastIndexOf('\n', at) + 1, at);
    at = log.indexOf(start, after);
  }
}

/** Tests whose name is followed by one line of output, and then by `ok`. */
function* namesBeforeLine(log: string): Generator<string> {
  const [error, check] = [' ... Internal Server Error: /', ' ... System check identified no issues (0 silenced)'];
  let previous = '';
  for (const line of log.split('\n')) {
    if (line === 'ok' && previous.endsWith(check)) yield previous.slice(0, -check.length);
    const at = line === 'ok' ? previous.indexOf(error) : -1;
    if (at >= 0 && previous.length > at + error.length && previous.endsWith('/')) yield previous.slice(0, at);
    previous = line;
  }
}

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
  const statuses = new Statuses();
  for (const line of log.split('\n')) {
    const [start, end] = [line.indexOf(' '), line.lastIndexOf(' ')];
    const at = line.lastIndexOf('.py:', end - '.py:'.length);
    if (start >= 0 && at > start) statuses.set(line.slice(start + 1, end), 'FAILED');
  }
  const ends = { E: 'ERROR', F: 'FAILED', ok: 'PASSED' } as const;
  for (const raw of log.split('\n')) {
    const line = raw.trim();
    const [, end] = / (E|F|ok)$/.exec(line) ?? [];
    if (line.startsWith('test_') && (end === 'E' || end === 'F' || end === 'ok')) statuses.set(wordsOf(line)[0] ?? '', ends[end]);
  }
  return statuses;
};
