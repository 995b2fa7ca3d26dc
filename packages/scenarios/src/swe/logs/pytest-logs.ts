// Logs of pytest: the lines of its summary (`-rA`) in the variants that SWE-bench distinguishes, and the lines of `--verbose`.

import { type LogParser, Statuses, type TestStatus, testStatuses, wordsOf } from './test-status.ts';

const startOf = (line: string): TestStatus | undefined => testStatuses.find((status) => line.startsWith(status));
const endOf = (line: string): TestStatus | undefined => testStatuses.find((status) => line.endsWith(status));
const isStatus = (word: string | undefined): word is TestStatus => testStatuses.some((status) => status === word);

/** `SKIPPED [3] path:12: reason` counts tests, and names none. */
const isSkipCount = (status: string | undefined, name: string) => status === 'SKIPPED' && /^\[\d+\]$/.test(name);

interface SummaryOptions {
  /** The line as it is read. */
  readonly clean?: (line: string) => string;
  /** The name of the test as the data set writes it. */
  readonly rename?: (name: string) => string;
}

/** The name is the second word, whatever follows it. */
const makeSummaryParser =
  ({ clean = (line) => line, rename = (name) => name }: SummaryOptions): LogParser =>
  (log) => {
    const statuses = new Statuses();
    for (const raw of log.split('\n')) {
      const line = clean(raw);
      const start = startOf(line);
      if (start === undefined) continue;
      const [status, name] = wordsOf(start === 'FAILED' ? line.replaceAll(' - ', ' ') : line);
      if (name === undefined || isSkipCount(status, name) || !isStatus(status)) continue;
      statuses.set(rename(name), status);
    }
    return statuses;
  };

export const parsePytest = makeSummaryParser({});

/** A path in the parameters of a test keeps only its last part, since it differs between machines. */
export const parsePytestOptions = makeSummaryParser({
  rename(name) {
    const [start, end] = [name.indexOf('['), name.lastIndexOf(']')];
    if (start < 0 || end < start) return name;
    const [main, option] = [name.slice(0, start), name.slice(start + 1, end)];
    const isPath = option.startsWith('/') && !option.startsWith('//') && !option.includes('*');
    return `${main}[${isPath ? `/${option.split('/').at(-1)}` : option}]`;
  },
});

export const parseMatplotlib = makeSummaryParser({
  clean: (line) => line.replaceAll('MouseButton.LEFT', '1').replaceAll('MouseButton.RIGHT', '3'),
});

/** Without colours, with spaces in names, and also with the status at the end of a line, as old versions write it. */
export const parsePytestV2: LogParser = (log) => {
  const statuses = new Statuses();
  for (const raw of log.split('\n')) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
    const line = raw.replaceAll(/\[\d+m/g, '').replaceAll(/[\u0001-\u001f]/g, '');
    const start = startOf(line);
    if (start !== undefined) {
      const [status, ...name] = wordsOf(start === 'FAILED' ? (line.split(' - ', 1)[0] ?? '') : line);
      if (name.length > 0 && isStatus(status) && !isSkipCount(status, name[0] ?? '')) statuses.set(name.join(' '), status);
    } else if (endOf(line) !== undefined) {
      const words = wordsOf(line);
      const status = words.at(-1);
      if (words.length >= 2 && isStatus(status)) statuses.set(words.slice(0, -1).join(' '), status);
    }
  }
  return statuses;
};

/** Passed tests in the middle or at the start of a line, failed ones at the start. */
export const parseSeaborn: LogParser = (log) => {
  const statuses = new Statuses();
  for (const line of log.split('\n')) {
    const [first, second] = wordsOf(line);
    if (first === undefined || second === undefined) continue;
    if (line.startsWith('FAILED')) statuses.set(second, 'FAILED');
    else if (line.includes(' PASSED ')) {
      if (second === 'PASSED') statuses.set(first, 'PASSED');
    } else if (line.startsWith('PASSED')) statuses.set(second, 'PASSED');
  }
  return statuses;
};

/** `tests/test_a.py::test_b PASSED   [ 10%]`, as `--verbose` writes it; SWE-smith and SWE-rebench use it. */
export const parsePytestVerbose: LogParser = (log) => {
  const statuses = new Statuses();
  for (const line of log.split('\n')) {
    const [first = ''] = /^\S+/.exec(line) ?? [];
    const found = first.includes('::', 1) ? /\s(PASSED|FAILED|SKIPPED|ERROR|XFAIL)(?:\s|$)/.exec(line) : undefined;
    const status = found?.[1];
    if (isStatus(status)) statuses.set(line.slice(0, found?.index).trimEnd(), status);
  }
  return statuses;
};

/** The summary with names as R2E-Gym writes them: without the file, and with dots. */
export const parseR2e: LogParser = (log) => {
  const statuses = new Statuses();
  const [, summary = ''] = log.split('short test summary info');
  for (const raw of summary.split('\n')) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
    const line = raw.replaceAll(/\u001b\[\d+m/g, '');
    const [, status, rest = ''] = /^(PASSED|FAILED|ERROR)\s+(.*)/.exec(line) ?? [];
    const name = rest.split(' - ', 1)[0]?.split('::').slice(1).join('.').trim();
    if (isStatus(status) && name) statuses.set(name, status);
  }
  return statuses;
};
