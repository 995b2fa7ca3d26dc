// Reads what a test command left: its log and the records of the reporter. Pure, for a grader's thread; what it returns is small, however
// much the tests printed.

import { type Attested, readRecords } from '../../verifier/reporter.ts';
import { logParserOf, runnerOf } from '../logs/parse-log.ts';
import type { StatusMap, TestStatus } from '../logs/test-status.ts';
import type { SweTask } from '../task/swe-task.ts';
import { findFault, isPassing, judgeTests, type TestsVerdict } from './verdict.ts';

export type SuiteTask = Pick<SweTask, 'log_parser' | 'FAIL_TO_PASS' | 'PASS_TO_PASS' | 'eval_type' | 'expected'>;

interface SuiteOutput {
  readonly output: Uint8Array;
  /** Follows the markers around the log. */
  readonly number: string;
  readonly records: Uint8Array;
  /** Of the first record. */
  readonly key: string;
  readonly exitCode: number | undefined;
  readonly timedOut: boolean;
}

export interface ReadSuite {
  /** The end of what was printed between the markers. */
  readonly log: string;
  readonly verdict: TestsVerdict;
  /** Whether pytest itself reported, so that the log alone does not count. */
  readonly isAttested: boolean;
  /** Tests that passed in the log only; the first of them. */
  readonly forged: readonly string[];
  /** Why this describes no test run. */
  readonly fault?: string;
}

export const startMarker = '>>>>> Start Test Output';
export const endMarker = '>>>>> End Test Output';
const tailLength = 4000;
const maxForged = 100;

export function readSuite(task: SuiteTask, { output, number, records, key, exitCode, timedOut }: SuiteOutput): ReadSuite {
  const runner = runnerOf(task.log_parser);
  const attested = runner && readRecords(toText(records, 'latin1'), key, runner);
  const log = sliceLog(toText(output, 'utf8'), number);
  const parsed = logParserOf(task.log_parser)(innerLog(log ?? ''));
  const isAttested = attested?.started === true;
  const { statuses, forged } = isAttested ? confirm(parsed, parseAttested(task, attested)) : { statuses: parsed, forged: [] };
  const fault = faultOf({ log, exitCode, timedOut, attested }, statuses);
  return {
    log: (log ?? '').slice(-tailLength),
    verdict: judgeSuite(task, fault === undefined ? statuses : new Map()),
    isAttested,
    forged,
    ...(fault === undefined ? {} : { fault }),
  };
}

export function judgeSuite(task: SuiteTask, statuses: StatusMap): TestsVerdict {
  const { FAIL_TO_PASS: failToPass, PASS_TO_PASS: passToPass, eval_type: evalType, expected } = task;
  return judgeTests(statuses, { failToPass, passToPass, evalType, ...(expected ? { expected } : {}) });
}

const toText = ({ buffer, byteOffset, byteLength }: Uint8Array, encoding: 'utf8' | 'latin1'): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString(encoding);

/** Undefined if the end marker is missing: then the tests did not run to their end. */
function sliceLog(output: string, number: string): string | undefined {
  const [start, end] = [output.indexOf(`${startMarker} ${number}\n`), output.lastIndexOf(`\n${endMarker} ${number}\n`)];
  return start < 0 || end < start ? undefined : output.slice(start + startMarker.length + number.length + 2, end);
}

/** A script of a data set may print the markers of SWE-bench itself. */
function innerLog(log: string): string {
  const inner = log.split(startMarker)[1]?.split(endMarker)[0];
  return inner !== undefined && log.includes(endMarker) ? inner : log;
}

/** Read with the same parser as the log, so that names are changed in the same way. */
function parseAttested(task: SuiteTask, { lines }: Attested): StatusMap {
  const parse = logParserOf(task.log_parser);
  if (task.log_parser === 'pytest_verbose') return parse(lines.map(statusLast).join('\n'));
  return parse([...(task.log_parser === 'r2e' ? ['short test summary info'] : []), ...lines].join('\n'));
}

function statusLast(line: string): string {
  const at = line.indexOf(' ');
  return at < 0 ? line : `${line.slice(at + 1)} ${line.slice(0, at)}`;
}

/** A test passes only if pytest saw it pass. */
function confirm(parsed: StatusMap, seen: StatusMap): { readonly statuses: StatusMap; readonly forged: string[] } {
  const statuses = new Map<string, TestStatus>();
  const forged: string[] = [];
  for (const [name, status] of parsed) {
    const isForged = isPassing(status) && !isPassing(seen.get(name));
    if (isForged && forged.length < maxForged) forged.push(name);
    statuses.set(name, isForged ? 'FAILED' : status);
  }
  return { statuses, forged };
}

interface ReadRun {
  readonly log: string | undefined;
  readonly exitCode: number | undefined;
  readonly timedOut: boolean;
  /** Absent for runners without a reporter. */
  readonly attested: Attested | undefined;
}

function faultOf({ log, exitCode, timedOut, attested }: ReadRun, statuses: StatusMap): string | undefined {
  if (timedOut) return 'the tests did not end in time';
  if (log === undefined) return `the tests ended the shell that ran them (exit code ${exitCode ?? 'none'})`;
  if (attested?.started && !attested.ended) return 'a process of the tests ended before its test runner did';
  return findFault(statuses, { log, exitCode });
}
