// The status of a test in a log, in the words of SWE-bench, and the map that every log parser returns.

export const testStatuses = ['PASSED', 'FAILED', 'SKIPPED', 'ERROR', 'XFAIL'] as const;
export type TestStatus = (typeof testStatuses)[number];

/** By the name of the test, in the order of the log. A later line about the same test replaces an earlier one. */
export type StatusMap = ReadonlyMap<string, TestStatus>;

export type LogParser = (log: string) => StatusMap;

/** More than any suite has. A thread that must make room for more would end its process. */
const mostTests = 1_000_000;

/** Throws a RangeError, as a map does that has no room left. */
export class Statuses extends Map<string, TestStatus> {
  override set(name: string, status: TestStatus): this {
    if (this.size >= mostTests && !this.has(name)) throw new RangeError('Map maximum size exceeded: a log names too many tests');
    return super.set(name, status);
  }
}

/** Adds one status for each line that matches; a name or a status that is undefined is no result. */
export function parseLines(
  log: string,
  pattern: RegExp,
  toEntry: (match: RegExpExecArray) => readonly [string | undefined, TestStatus | undefined],
): Map<string, TestStatus> {
  const statuses = new Statuses();
  for (const line of log.split('\n')) {
    const match = pattern.exec(line.trim());
    if (!match) continue;
    const [name, status] = toEntry(match);
    if (name !== undefined && status !== undefined) statuses.set(name, status);
  }
  return statuses;
}

/** Python's idea of space between words, without empty words at the ends. */
export const wordsOf = (line: string): string[] => line.split(/\s+/).filter((word) => word !== '');
