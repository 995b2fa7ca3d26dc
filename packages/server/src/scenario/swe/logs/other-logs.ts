// Logs of test runners of other languages, by the lines that they print for each test.

import { type LogParser, parseLines, type TestStatus } from './test-status.ts';

type Words = Readonly<Record<string, TestStatus>>;

/** One line for each test; the groups `status` and `name` of the pattern are its word and its name. */
const makeLineParser =
  (pattern: RegExp, words: Words): LogParser =>
  (log) =>
    parseLines(log, pattern, ({ groups: { status = '', name = '' } = {} }) => [name, words[status]]);

export const parseGoTest = makeLineParser(/^--- (?<status>PASS|FAIL|SKIP): (?<name>.+) \(.+\)$/, {
  PASS: 'PASSED',
  FAIL: 'FAILED',
  SKIP: 'SKIPPED',
});
export const parseCargo = makeLineParser(/^test\s+(?<name>\S+)\s+\.\.\.\s+(?<status>\w+)$/, { ok: 'PASSED', FAILED: 'FAILED' });
export const parseAnt = makeLineParser(/^\[junit\]\s+\[(?<status>PASS|FAIL|ERR)\]\s+(?<name>.*)$/, {
  PASS: 'PASSED',
  FAIL: 'FAILED',
  ERR: 'FAILED',
});
export const parseMinitest = makeLineParser(/^(?<name>.+)\. .*=.*(?<status>[.FE]).*$/, { '.': 'PASSED', F: 'FAILED', E: 'FAILED' });
export const parseCucumber = makeLineParser(/^(?<name>.*) \.+(?<status>\.|F)/, { '.': 'PASSED', F: 'FAILED' });
export const parseRubyUnit = makeLineParser(/^(?:test: )?(?<name>.+):\s+(?<status>\.|E\b|F\b|O\b)/, {
  '.': 'PASSED',
  E: 'FAILED',
  F: 'FAILED',
  O: 'SKIPPED',
});
export const parseRspec = makeLineParser(/^(?<name>.+) - (?<status>passed|failed)/, { passed: 'PASSED', failed: 'FAILED' });
export const parseJq = makeLineParser(/^(?<status>PASS|FAIL):\s(?<name>.+)$/, { PASS: 'PASSED', FAIL: 'FAILED' });
export const parseMicropython = makeLineParser(/^(?<status>pass|FAIL|skip)\s+(?<name>.+)$/, {
  pass: 'PASSED',
  FAIL: 'FAILED',
  skip: 'SKIPPED',
});
export const parseGoogleTest = makeLineParser(/^.*\[\s*(?<status>OK|FAILED)\s*\]\s(?<name>.*)\s\(.*\)$/, {
  OK: 'PASSED',
  FAILED: 'FAILED',
});
export const parseJest = makeLineParser(/^(?<status>[✓✕○])\s(?<name>.+?)\s*(?:\s\(\d+\s*m?s\))?$/, {
  '✓': 'PASSED',
  '✕': 'FAILED',
  '○': 'SKIPPED',
});
export const parseJestJson = makeLineParser(/^\[(?<status>PASSED|FAILED)\]\s(?<name>.+)$/, { PASSED: 'PASSED', FAILED: 'FAILED' });
export const parseVitest = makeLineParser(/^(?<status>[✓×↓])\s(?<name>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?$/, {
  '✓': 'PASSED',
  '×': 'FAILED',
  '↓': 'SKIPPED',
});
export const parseTap = makeLineParser(/^(?<status>ok|not ok) \d+ (?<name>.+)$/, { ok: 'PASSED', 'not ok': 'FAILED' });
/** Jest without `--verbose`: one line for each file, which starts with the word. */
export const parseJestFiles: LogParser = (log) => {
  const statuses = new Map<string, TestStatus>();
  for (const line of log.split('\n')) {
    const [, word, name] = /^(PASS|FAIL)\s(.*?)(?:\s\([\d.]+\s?m?s\).*)?$/.exec(line) ?? [];
    if (name !== undefined) statuses.set(name, word === 'PASS' ? 'PASSED' : 'FAILED');
  }
  return statuses;
};

/** A failed test is followed by the file that it is in. */
export const parseRedis: LogParser = (log) =>
  parseLines(log, /^\[(ok|err|skip|ignore)\]:\s(.+?)(?:\s\(\d+\s*m?s\))?$/, ([, word = '', name = '']) => {
    if (word === 'err') return [name.replace(/\s+in\s+\S+$/, ''), 'FAILED'];
    return [name, word === 'ok' ? 'PASSED' : 'SKIPPED'];
  });

/** Maven names no passed tests: each is run by its own command, which ends with the result of the build. */
export const parseMaven: LogParser = (log) => {
  const [tests, early]: [string[], TestStatus[]] = [[], []];
  const statuses = new Map<string, TestStatus>();
  for (const line of log.split('\n').map((one) => one.trim())) {
    const [, test] = /^.*-Dtest=(\S+).*$/.exec(line) ?? [];
    if (test !== undefined) tests.push(test);
    const [, word] = /^.*BUILD (SUCCESS|FAILURE)$/.exec(line) ?? [];
    if (word === undefined) continue;
    const status = word === 'SUCCESS' ? 'PASSED' : 'FAILED';
    const name = tests.shift();
    if (name === undefined) early.push(status);
    else statuses.set(name, status);
  }
  for (const [at, status] of early.entries()) {
    const name = tests[at];
    if (name !== undefined) statuses.set(name, status);
  }
  return statuses;
};

/** `Class > test PASSED`, also with output between the name and the status. */
export const parseGradle: LogParser = (log) => {
  const statuses = new Map<string, TestStatus>();
  let waiting: string | undefined;
  for (const line of log.split('\n').map((one) => one.trim())) {
    const [, whole, status] = /^([^>].+)\s+(PASSED|FAILED)$/.exec(line) ?? [];
    if (whole !== undefined) {
      statuses.set(whole, status === 'PASSED' ? 'PASSED' : 'FAILED');
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
  const statuses = new Map<string, TestStatus>();
  let suite = 'None';
  for (const line of log.split('\n')) {
    const [, heading] = /^([\p{L}\p{N}_].+) \(.+\)$/u.exec(line) ?? [];
    const [, sign = '', name = ''] = /^\s*([✔✘↩])\s*(.*)$/.exec(line) ?? [];
    const status = phpWords[sign];
    if (heading !== undefined) suite = heading;
    else if (status !== undefined) statuses.set(`${suite} > ${name}`, status);
  }
  return statuses;
};
