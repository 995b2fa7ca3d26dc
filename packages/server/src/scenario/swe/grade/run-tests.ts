// Runs the test command of a task between two markers and reads what happened: the log, the exit code, and the records of the reporter.

import { randomBytes } from 'node:crypto';
import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '../../../sandbox/sandbox.ts';
import { type Attested, readRecords } from '../../verifier/reporter.ts';
import { renderSiteSource, reporterSource } from '../../verifier/reporter-source.ts';
import { logParserOf, runnerOf } from '../logs/parse-log.ts';
import type { StatusMap, TestStatus } from '../logs/test-status.ts';
import type { SweTask } from '../task/swe-task.ts';
import { findFault, isPassing } from './verdict.ts';

export interface SuiteOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface SuiteRun {
  /** What was printed between the markers. */
  readonly log: string;
  readonly statuses: StatusMap;
  /** Absent if a signal or the time limit ended the command. */
  readonly exitCode?: number;
  readonly timedOut: boolean;
  /** Whether pytest itself reported, so that the log alone does not count. */
  readonly isAttested: boolean;
  /** Tests that passed in the log only. */
  readonly forged: readonly string[];
  /** Why this describes no test run. */
  readonly fault?: string;
}

const maxLogBytes = 32 << 20;
const maxRecordBytes = 32 << 20;
/** Codes of a sandbox that code under test ended. */
const judgedFaults: ReadonlySet<string> = new Set(['sandbox-limit', 'sandbox-killed', 'sandbox-refused']);

const startMarker = '>>>>> Start Test Output';
const endMarker = '>>>>> End Test Output';

/**
 * The test command gets no standard input, and one stream of output. The end marker has a number that is not in the environment of the tests.
 * The exit code is also that of bash, which code under test cannot choose.
 */
const runScript = `exec 2>&1
cd -- "$millrace_workdir" || exit 125
eval "$millrace_activate"
export PYTHONPATH="$millrace_folder\${PYTHONPATH:+:$PYTHONPATH}" PYTEST_ADDOPTS="\${PYTEST_ADDOPTS:+$PYTEST_ADDOPTS }-p $millrace_plugin -p no:cacheprovider"
export PYTHONDONTWRITEBYTECODE=1
millrace_marker=$millrace_number millrace_script=$millrace_command
unset millrace_number millrace_command millrace_activate millrace_folder millrace_plugin millrace_workdir
printf '\\n%s %s\\n' '${startMarker}' "$millrace_marker"
( unset millrace_marker; eval "$millrace_script" ) < /dev/null
millrace_code=$?
printf '\\n%s %s\\n' '${endMarker}' "$millrace_marker"
exit "$millrace_code"`;

/** Never throws for what code under test did. */
export async function runTests(sandbox: Sandbox, task: SweTask, { timeoutMs, signal }: SuiteOptions): Promise<SuiteRun> {
  const optional = signal ? { signal } : {};
  const [key, number, name] = [secret(), secret(), `millrace_${randomBytes(6).toString('hex')}`];
  const folder = `/tmp/${name}`;
  await sandbox.writeFile(`${folder}/${name}.py`, reporterSource, optional);
  await sandbox.writeFile(`${folder}/sitecustomize.py`, renderSiteSource(name), optional);
  await sandbox.writeFile(`${folder}/key`, key, { mode: 0o600, ...optional });
  const env = {
    millrace_workdir: task.workdir,
    millrace_folder: folder,
    millrace_plugin: name,
    millrace_activate: task.activate,
    // A command that sets the path itself keeps the reporter on it.
    millrace_command: task.test_command.replaceAll(/\bPYTHONPATH=/g, `PYTHONPATH=${folder}:`),
    millrace_number: number,
  };
  try {
    const result = await sandbox.exec(['/bin/bash', '-c', runScript], { env, cwd: '/', timeoutMs, capBytes: maxLogBytes, ...optional });
    const records = await sandbox.readFile(`${folder}/records`, { maxBytes: maxRecordBytes, ...optional }).catch(() => Buffer.alloc(0)); // none were written
    const runner = runnerOf(task.log_parser);
    const attested = runner && readRecords(records.toString('latin1'), key, runner);
    const output = result.stdout.toString('utf8');
    const ends = { timedOut: result.timedOut, ...(result.exitCode === undefined ? {} : { exitCode: result.exitCode }) };
    return toTestRun(task, { ...ends, log: sliceLog(output, number), attested });
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof RolloutError) || !judgedFaults.has(error.code)) throw error;
    return {
      log: '',
      statuses: new Map(),
      timedOut: false,
      isAttested: false,
      forged: [],
      fault: `the tests ended their sandbox: ${error.message}`,
    };
  }
}

const secret = (): string => randomBytes(24).toString('hex');

/** Undefined if the end marker is missing: then the tests did not run to their end. */
function sliceLog(output: string, number: string): string | undefined {
  const [start, end] = [output.indexOf(`${startMarker} ${number}\n`), output.lastIndexOf(`\n${endMarker} ${number}\n`)];
  return start < 0 || end < start ? undefined : output.slice(start + startMarker.length + number.length + 2, end);
}

interface RawRun {
  readonly log: string | undefined;
  readonly exitCode?: number | undefined;
  readonly timedOut: boolean;
  /** Absent for runners without a reporter. */
  readonly attested: Attested | undefined;
}

/** A script of a data set may print the markers of SWE-bench itself. */
function innerLog(log: string): string {
  const inner = log.split(startMarker)[1]?.split(endMarker)[0];
  return inner !== undefined && log.includes(endMarker) ? inner : log;
}

function toTestRun(task: SweTask, { log, exitCode, timedOut, attested }: RawRun): SuiteRun {
  const ends = { timedOut, ...(exitCode === undefined ? {} : { exitCode }) };
  const whole = log ?? '';
  const parsed = logParserOf(task.log_parser)(innerLog(whole));
  const isAttested = attested?.started === true;
  const { statuses, forged } = isAttested ? confirm(parsed, parseAttested(task, attested)) : { statuses: parsed, forged: [] };
  const fault = faultOf({ log, exitCode, timedOut, attested }, statuses);
  return { log: whole, statuses, ...ends, isAttested, forged, ...(fault === undefined ? {} : { fault }) };
}

/** Read with the same parser as the log, so that names are changed in the same way. */
function parseAttested(task: SweTask, { lines }: Attested): StatusMap {
  const parse = logParserOf(task.log_parser);
  if (task.log_parser === 'pytest_verbose') return parse(lines.map((line) => line.replace(/^(\S+) (.*)$/, '$2 $1')).join('\n'));
  return parse([...(task.log_parser === 'r2e' ? ['short test summary info'] : []), ...lines].join('\n'));
}

/** A test passes only if pytest saw it pass. */
function confirm(parsed: StatusMap, seen: StatusMap): { readonly statuses: StatusMap; readonly forged: string[] } {
  const statuses = new Map<string, TestStatus>();
  const forged: string[] = [];
  for (const [name, status] of parsed) {
    const isForged = isPassing(status) && !isPassing(seen.get(name));
    if (isForged) forged.push(name);
    statuses.set(name, isForged ? 'FAILED' : status);
  }
  return { statuses, forged };
}

function faultOf({ log, exitCode, timedOut, attested }: RawRun, statuses: StatusMap): string | undefined {
  if (timedOut) return 'the tests did not end in time';
  if (log === undefined) return `the tests ended the shell that ran them (exit code ${exitCode ?? 'none'})`;
  if (attested?.started && !attested.ended) return 'a process of the tests ended before its test runner did';
  return findFault(statuses, { log, exitCode });
}
