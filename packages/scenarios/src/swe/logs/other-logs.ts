// Logs of test runners of other languages, by the lines that they print for each test.

import { type LogParser, parseLines, Statuses, type TestStatus } from './test-status.ts';

type Words = Readonly<Record<string, TestStatus>>;

/** One line for each test; the groups `status` and `name` of the pattern are its word and its name. */
const makeLineParser =
  (pattern: RegExp, words: Words): LogParser =>
  (log) =>
    parseLines(log, pattern, ({ groups: { status = '', name = '' } = {} }) => [name, words[status]]);

const goWords: Words = { PASS: 'PASSED', FAIL: 'FAILED', SKIP: 'SKIPPED' };
export const parseGoTest: LogParser = (log) =>
  parseLines(log, /^--- (PASS|FAIL|SKIP): (.+)$/, ([, word = '', rest = '']) => [beforeParentheses(rest), goWords[word]]);
export const parseCargo = makeLineParser(/^test\s+(?<name>\S+)\s+\.\.\.\s+(?<status>\w+)$/, { ok: 'PASSED', FAILED: 'FAILED' });
export const parseAnt = makeLineParser(/^\[junit\]\s+\[(?<status>PASS|FAIL|ERR)\]\s+(?<name>.*)$/s, {
  PASS: 'PASSED',
  FAIL: 'FAILED',
  ERR: 'FAILED',
});
/** `Class#test_a = 0.01 s = .`: the last mark after the last sign of equality is the status. */
export const parseMinitest: LogParser = (log) =>
  parseLines(log, /^.+$/, ([line]) => {
    const at = Math.max(...['.', 'F', 'E'].map((mark) => line.lastIndexOf(mark)));
    const end = line.lastIndexOf('. ', line.lastIndexOf('=', at - 1) - 2);
    return [end > 0 && at > 0 ? line.slice(0, end) : undefined, line[at] === '.' ? 'PASSED' : 'FAILED'];
  });
/** The dots after the name, of which the last may be an F. */
export const parseCucumber: LogParser = (log) =>
  parseLines(log, /^.+$/, ([line]) => {
    const dots = [...line.matchAll(/ (?:\.+F|\.\.+)/g)].at(-1);
    return [dots && line.slice(0, dots.index), dots?.[0].endsWith('F') ? 'FAILED' : 'PASSED'];
  });
export const parseRubyUnit = makeLineParser(/^(?:test: )?(?<name>.+):\s+(?<status>\.|E\b|F\b|O\b)/, {
  '.': 'PASSED',
  E: 'FAILED',
  F: 'FAILED',
  O: 'SKIPPED',
});
export const parseRspec = makeLineParser(/^(?<name>.+) - (?<status>passed|failed)/, { passed: 'PASSED', failed: 'FAILED' });
export const parseJq = makeLineParser(/^(?<status>PASS|FAIL):\s(?<name>.+)$/, { PASS: 'PASSED', FAIL: 'FAILED' });
export const parseMicropython = makeLineParser(/^(?<status>pass|FAIL|skip)\s+(?<name>.+)$/s, {
  pass: 'PASSED',
  FAIL: 'FAILED',
  skip: 'SKIPPED',
});
/** `[       OK ] Suite.test (0 ms)`, also after other output. */
export const parseGoogleTest: LogParser = (log) =>
  parseLines(log, /^.*\)$/, ([line]) => {
    const end = [...line.matchAll(/\s\(/g)].findLast(({ index }) => index + 2 < line.length)?.index ?? -1;
    const mark = [...line.matchAll(/\[\s*(OK|FAILED)\s*\]\s/g)].findLast((one) => one.index + one[0].length <= end);
    return [mark && line.slice(mark.index + mark[0].length, end), mark?.[1] === 'OK' ? 'PASSED' : 'FAILED'];
  });
const jestSigns: Words = { '✓': 'PASSED', '✕': 'FAILED', '○': 'SKIPPED' };
export const parseJest: LogParser = (log) =>
  parseLines(log, /^([✓✕○])\s(.+)$/, ([, sign = '', rest = '']) => [withoutDuration(rest).trimEnd(), jestSigns[sign]]);
export const parseJestJson = makeLineParser(/^\[(?<status>PASSED|FAILED)\]\s(?<name>.+)$/, { PASSED: 'PASSED', FAILED: 'FAILED' });
export const parseVitest = makeLineParser(/^(?<status>[✓×↓])\s(?<name>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?$/, {
  '✓': 'PASSED',
  '×': 'FAILED',
  '↓': 'SKIPPED',
});
export const parseTap = makeLineParser(/^(?<status>ok|not ok) \d+ (?<name>.+)$/, { ok: 'PASSED', 'not ok': 'FAILED' });
/** Jest without `--verbose`: one line for each file, which starts with the word. */
export const parseJestFiles: LogParser = (log) => {
  const statuses = new Statuses();
  for (const line of log.split('\n')) {
    const [, word, rest = ''] = /^(PASS|FAIL)\s(.*)$/.exec(line) ?? [];
    const name = rest.slice(0, /\s\([\d.]+\s?m?s\)/.exec(rest)?.index);
    if (word !== undefined) statuses.set(name, word === 'PASS' ? 'PASSED' : 'FAILED');
  }
  return statuses;
};

/** A failed test is followed by the file that it is in. */
export const parseRedis: LogParser = (log) =>
  parseLines(log, /^\[(ok|err|skip|ignore)\]:\s(.+?)(?:\s\(\d+\s*m?s\))?$/, ([, word = '', name = '']) => {
    if (word === 'err') return [withoutPlace(name), 'FAILED'];
    return [name, word === 'ok' ? 'PASSED' : 'SKIPPED'];
  });

/** Maven names no passed tests: each is run by its own command, which ends with the result of the build. */
export const parseMaven: LogParser = (log) => {
  const [tests, early]: [string[], TestStatus[]] = [[], []];
  let next = 0;
  const statuses = new Statuses();
  for (const line of log.split('\n').map((one) => one.trim())) {
    const option = [...line.matchAll(/-Dtest=(?=\S)/g)].at(-1);
    if (option) tests.push(/^\S+/.exec(line.slice(option.index + option[0].length))?.[0] ?? '');
    if (!line.endsWith('BUILD SUCCESS') && !line.endsWith('BUILD FAILURE')) continue;
    const status = line.endsWith('SUCCESS') ? 'PASSED' : 'FAILED';
    const name = tests[next];
    if (name === undefined) early.push(status);
    else {
      statuses.set(name, status);
      next += 1;
    }
  }
  for (const [at, status] of early.entries()) {
    const name = tests[next + at];
    if (name !== undefined) statuses.set(name, status);
  }
  return statuses;
};

/** `Class > test PASSED`, also with output between the name and the status. */
export const parseGradle: LogParser = (log) => {
  const statuses = new Statuses();
  let waiting: string | undefined;
  for (const line of log.split('\n').map((one) => one.trim())) {
    const status = line.endsWith('PASSED') ? 'PASSED' : line.endsWith('FAILED') ? 'FAILED' : undefined;
    const whole = line.slice(0, -'PASSED'.length - 1);
    if (status !== undefined && whole.length > 1 && !whole.startsWith('>') && /\s/.test(line[whole.length] ?? '')) {
      statuses.set(whole, status);
      waiting = undefined;
    } else if (/^[^>]\S*\s+>\s+\S+$/.test(line)) waiting = line;
    else if (waiting !== undefined && (line === 'PASSED' || line === 'FAILED')) {
      statuses.set(waiting, line);
      waiting = undefined;
    }
  }
  return statuses;
};

const phpWords: Readonly<Record<string, TestStatus>> = { '✔': 'PASSED', '✘': 'FAILED', '↩': 'SKIPPED' };

/** PHPUnit with `--testdox`: the tests of a class stand below its name. */
export const parsePhpunit: LogParser = (log) => {
  const statuses = new Statuses();
  let suite = 'None';
  for (const line of log.split('\n')) {
    const heading = /^[\p{L}\p{N}_]/u.test(line) ? beforeParentheses(line) : undefined;
    const text = line.trimStart();
    const status = phpWords[text.slice(0, 1)];
    if (heading !== undefined && heading.length > 1) suite = heading;
    else if (status !== undefined) statuses.set(`${suite} > ${text.slice(1).trimStart()}`, status);
  }
  return statuses;
};

/** `name` of `name (anything)`; undefined if the text does not end like that. */
function beforeParentheses(text: string): string | undefined {
  const at = text.lastIndexOf(' (', text.length - ' (x)'.length);
  return at > 0 && text.endsWith(')') ? text.slice(0, at) : undefined;
}

/** Without ` (12 ms)` at the end, unless nothing else is left. */
function withoutDuration(text: string): string {
  const at = text.lastIndexOf('(');
  return at > 1 && /^\s$/.test(text[at - 1] ?? '') && /^\(\d+\s*m?s\)$/.test(text.slice(at)) ? text.slice(0, at - 1) : text;
}

/** Without ` in file` at the end. */
function withoutPlace(text: string): string {
  const words = [...text.matchAll(/\s\S/g)].slice(-2);
  const [before, last] = words;
  const isPlace = before && last && !/\s$/.test(text) && text.slice(before.index + 1, last.index).trimEnd() === 'in';
  return isPlace ? text.slice(0, before.index).trimEnd() : text;
}
