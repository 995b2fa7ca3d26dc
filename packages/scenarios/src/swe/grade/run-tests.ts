// Runs the test command of a task between two markers and reads what happened: the log, the exit code, and the records of the reporter.

import { randomBytes } from 'node:crypto';
import { definedOf, RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { gradeInThread } from '../../verifier/graders.ts';
import { renderSiteSource, reporterSource } from '../../verifier/reporter-source.ts';
import type { SweTask } from '../task/swe-task.ts';
import { endMarker, judgeSuite, type ReadSuite, readSuite, type SuiteTask, startMarker } from './read-suite.ts';

interface SuiteOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface SuiteRun extends ReadSuite {
  /** Absent if a signal or the time limit ended the command. */
  readonly exitCode?: number;
  readonly timedOut: boolean;
}

const maxLogBytes = 32 << 20;
const maxRecordBytes = 32 << 20;
/** Codes of a sandbox that code under test ended. */
const judgedFaults: ReadonlySet<string> = new Set(['sandbox-limit', 'sandbox-killed', 'sandbox-refused']);

/** For linear work on the longest log. */
const readCpuMs = 20_000;

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
    const ends = { timedOut: result.timedOut, exitCode: result.exitCode };
    const run = { output: new Uint8Array(result.stdout), number, records: new Uint8Array(records), key, ...ends };
    const transfer = [run.output, run.records];
    const read = await gradeInThread(readSuite, [toSuiteTask(task), run] as const, { cpuMs: readCpuMs, transfer, signal });
    return { ...(read ?? nothingRead(task, 'what the tests printed exhausts its parser')), ...definedOf(ends) };
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof RolloutError) || !judgedFaults.has(error.code)) throw error;
    return { ...nothingRead(task, `the tests ended their sandbox: ${error.message}`), timedOut: false };
  }
}

const toSuiteTask = ({ log_parser, FAIL_TO_PASS, PASS_TO_PASS, eval_type, expected }: SweTask): SuiteTask => ({
  ...{ log_parser, FAIL_TO_PASS, PASS_TO_PASS, eval_type },
  ...definedOf({ expected }),
});

const nothingRead = (task: SweTask, fault: string): ReadSuite => ({
  log: '',
  verdict: judgeSuite(task, new Map()),
  isAttested: false,
  forged: [],
  fault,
});

const secret = (): string => randomBytes(24).toString('hex');
