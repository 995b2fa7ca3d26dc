// Grades the tests of a task by their status, with the rules of the SWE-bench harness; pure.

import type { StatusMap, TestStatus } from '../logs/test-status.ts';

interface ExpectedTests {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /** `fail_only`: the log names failed tests only, and a test that is not named has passed. */
  readonly evalType: 'pass_and_fail' | 'fail_only';
  /** The status of every test: R2E-Gym wants exactly this map. Replaces the two lists. */
  readonly expected?: Readonly<Record<string, string>>;
}

export interface TestsVerdict {
  readonly resolved: boolean;
  readonly failToPass: TestCounts;
  readonly passToPass: TestCounts;
}

interface TestCounts {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
}

export function judgeTests(statuses: StatusMap, { failToPass, passToPass, evalType, expected }: ExpectedTests): TestsVerdict {
  if (expected) return judgeExact(statuses, expected);
  const isSilent = evalType === 'fail_only';
  const hasPassed = (name: string) => (isSilent ? statuses.get(name) !== 'FAILED' : isPassing(statusOf(statuses, name)));
  // A skipped test is no regression, but it is no repair either.
  const isKept = (name: string) => hasPassed(name) || (!isSilent && statusOf(statuses, name) === 'SKIPPED');
  const [repaired, kept] = [split(failToPass, hasPassed), split(passToPass, isKept)];
  return { resolved: repaired.failed.length === 0 && kept.failed.length === 0, failToPass: repaired, passToPass: kept };
}

/** Tests that no one expects: one is enough to fail. */
const maxOthers = 100;

function judgeExact(statuses: StatusMap, expected: Readonly<Record<string, string>>): TestsVerdict {
  const others = [...statuses.keys()].filter((name) => !Object.hasOwn(expected, name)).slice(0, maxOthers);
  const names = [...Object.keys(expected), ...others];
  const counts = split(names, (name) => Object.hasOwn(expected, name) && statuses.get(name) === expected[name]);
  return { resolved: counts.failed.length === 0, failToPass: counts, passToPass: { passed: [], failed: [] } };
}

const split = (names: readonly string[], isRight: (name: string) => boolean): TestCounts => ({
  passed: names.filter(isRight),
  failed: names.filter((name) => !isRight(name)),
});

export const isPassing = (status: TestStatus | undefined): boolean => status === 'PASSED' || status === 'XFAIL';

/**
 * Some data sets cut the names of tests inside their parameters. A name with more opening than closing brackets stands for all tests that
 * start with it, if they agree.
 */
function statusOf(statuses: StatusMap, name: string): TestStatus | undefined {
  const exact = statuses.get(name);
  if (exact !== undefined || count(name, '[') <= count(name, ']')) return exact;
  const longer = [...statuses].filter(([one]) => one.startsWith(name)).map(([, status]) => status);
  const [first] = longer;
  return longer.every((status) => isPassing(status) === isPassing(first)) ? first : undefined;
}

const count = (text: string, character: string): number => text.split(character).length - 1;

/** Summaries of runners that name only failed tests: they show that tests ran. No count may be zero. */
const suiteRan =
  /Executed [1-9]\d{0,9} of \d|TOTAL: [1-9]\d{0,9} (?:SUCCESS|FAILED)|[1-9]\d{0,9} passing|Tests:\s{1,99}[1-9]|Test Suites:\s{1,99}(?:\d{1,9} \w{1,20}, ){0,9}[1-9]\d{0,9} total|^# tests [1-9]|[1-9]\d{0,9} specs?, \d{1,9} failure|': ok$/m;

/** Why a log does not describe a test run; undefined if it does. */
export function findFault(statuses: StatusMap, run: { readonly log: string; readonly exitCode: number | undefined }): string | undefined {
  if (statuses.size === 0 && !suiteRan.test(run.log)) return 'no test ran';
  const hasFailed = [...statuses.values()].some((status) => status === 'FAILED' || status === 'ERROR');
  if (run.exitCode !== 0 && statuses.size > 0 && !hasFailed) return `no test failed, but the exit code was ${run.exitCode ?? 'none'}`;
  return undefined;
}
