// Grades a patch: applies it in a fresh sandbox, restores the tests, runs them and judges the result. A run that shows no test is held
// against a run without the patch, so that a broken task is never charged to the agent, and a broken repository never to the task.

import { createHash } from 'node:crypto';
import { systemClock } from '@millrace/base/clock';
import type { Sandbox } from '@millrace/sandbox';
import { gradeInThread } from '../../verifier/graders.ts';
import { toVerifierFault } from '../../verifier/verifier-fault.ts';
import { runnerOf } from '../logs/parse-log.ts';
import { applyPatch, findPaths, restorePaths } from '../repository/apply-patch.ts';
import { prepareRepository } from '../repository/prepare.ts';
import { chooseProtected } from '../repository/protected-paths.ts';
import type { ChangedPath } from '../repository/take-diff.ts';
import { addedFilesOf, filesOf } from '../rows/row.ts';
import type { SweTask } from '../task/swe-task.ts';
import { judgeSuite } from './read-suite.ts';
import { runTests, type SuiteRun } from './run-tests.ts';
import type { TestsVerdict } from './verdict.ts';

interface PatchGradeOptions {
  readonly task: SweTask;
  readonly patch: string | Buffer;
  /** The paths that the patch changes; found from its text if absent. */
  readonly paths?: readonly ChangedPath[];
  openSandbox(): Promise<Sandbox>;
  /** For each step but the tests, whose limit is `test_timeout_s`. */
  readonly stepMs: number;
  /** Tasks whose tests were seen to run on this machine. */
  readonly proven?: Set<string>;
  readonly signal?: AbortSignal;
}

export interface PatchGrade extends TestsVerdict {
  /** Why there is no verdict of the tests. */
  readonly reason?: 'patch_failed' | 'tests_broken' | 'forged';
  readonly why?: string;
  readonly appliedBy?: string;
  /** Changes of the patch that were undone before the tests. */
  readonly restored: readonly string[];
  readonly forged: readonly string[];
  readonly isAttested: boolean;
  readonly exitCode?: number;
  readonly log: string;
  readonly testMs: number;
}

/** Throws `evaluate-failed` if the tests do not run without the patch either: then the task or its image is at fault. */
export async function gradePatch(options: PatchGradeOptions): Promise<PatchGrade> {
  const { task, proven } = options;
  const grade = await tryPatch(options);
  const isSound = grade.reason === undefined && (grade.isAttested || runnerOf(task.log_parser) === undefined);
  if (isSound) proven?.add(proofOf(task, grade.isAttested));
  if (isSound || grade.reason === 'patch_failed') return grade;
  return await settle(grade, options);
}

const proofOf = (task: SweTask, isAttested: boolean): string =>
  createHash('sha256')
    .update(JSON.stringify([task, isAttested]))
    .digest('hex');

/** Decides whose fault a run without evidence is, by a run of the reference solution, or of no patch where there is none. */
async function settle(grade: PatchGrade, options: PatchGradeOptions): Promise<PatchGrade> {
  const { task, proven } = options;
  if (proven?.has(proofOf(task, true)) || (grade.reason !== undefined && proven?.has(proofOf(task, false)))) return blame(grade);
  const control = await tryPatch({ ...options, patch: task.patch, paths: undefined });
  if (control.reason !== undefined)
    throw toVerifierFault(
      `${task.instance_id}: without the agent's patch, too, ${control.why ?? control.reason}: ${control.log.trim().slice(-500)}`,
    );
  proven?.add(proofOf(task, control.isAttested));
  // Without a report of the runner in either, the log is all there is.
  return control.isAttested || grade.reason !== undefined ? blame(grade) : grade;
}

/** Nothing that such a run printed counts. */
function blame(grade: PatchGrade): PatchGrade {
  const { failToPass, passToPass } = grade;
  return {
    ...grade,
    resolved: false,
    reason: grade.reason ?? 'forged',
    why: grade.why ?? 'the test runner did not report its tests',
    failToPass: { passed: [], failed: [...failToPass.passed, ...failToPass.failed] },
    passToPass: { passed: [], failed: [...passToPass.passed, ...passToPass.failed] },
  };
}

type TryOptions = Omit<PatchGradeOptions, 'paths'> & { readonly paths?: readonly ChangedPath[] | undefined };

async function tryPatch({ task, patch, paths, openSandbox, stepMs, signal }: TryOptions): Promise<PatchGrade> {
  const sandbox = await openSandbox();
  const within = { workdir: task.workdir, timeoutMs: stepMs, ...(signal ? { signal } : {}) };
  await prepareRepository(sandbox, task, { purpose: 'tests', ...within });
  const changed = paths ?? (await findPaths(sandbox, filesOf(patch.toString()), within));
  const added = changed.filter(({ status }) => status === 'A').map(({ path }) => path);
  const applied = await applyPatch(sandbox, patch, { ...within, added });
  if (applied.by === undefined) return toGrade(task, { reason: 'patch_failed', why: applied.why, testMs: 0 });
  const testFiles = filesOf(task.test_patch);
  const solutionFiles = filesOf(task.patch);
  const rules = { testFiles, solutionFiles, extra: task.protected, repo: task.repo };
  const restored = await gradeInThread(chooseProtected, [changed, rules] as const, { signal: within.signal });
  if (restored === undefined) return toGrade(task, { reason: 'patch_failed', why: 'the patch changes too many paths', testMs: 0 });
  await restorePaths(sandbox, [...restored, ...(await findTestFiles(sandbox, task, within))], within);
  const ready = await addTests(sandbox, task, within);
  const rest = { appliedBy: applied.by, restored: restored.map(({ path }) => path) };
  if (ready !== undefined) return toGrade(task, { ...rest, reason: 'tests_broken', why: ready, testMs: 0 });
  const startMs = systemClock.monotonic();
  const run = await runTests(sandbox, task, { ...within, timeoutMs: task.test_timeout_s * 1000 });
  return toGrade(task, { ...rest, run, testMs: systemClock.monotonic() - startMs });
}

/** A file that the test patch adds may be in the image already. */
async function findTestFiles(sandbox: Sandbox, { test_patch }: SweTask, within: Parameters<typeof applyPatch>[2]): Promise<ChangedPath[]> {
  const added = new Set(addedFilesOf(test_patch));
  const found = await findPaths(sandbox, filesOf(test_patch), within);
  return found.map(({ status, path }) => ({ status: added.has(path) ? 'A' : status, path }));
}

/** Undefined, or why the tests could not be put in place. */
async function addTests(sandbox: Sandbox, task: SweTask, within: Parameters<typeof applyPatch>[2]): Promise<string | undefined> {
  const { by, why } = await applyPatch(sandbox, task.test_patch, { ...within, keep: true });
  if (by === undefined) return `the test patch does not apply: ${why}`;
  if (task.test_setup === '') return undefined;
  const { timeoutMs, signal } = within;
  const options = { cwd: task.workdir, timeoutMs, ...(signal ? { signal } : {}) };
  const result = await sandbox.exec(['/bin/bash', '-c', task.test_setup], options);
  return result.exitCode === 0 ? undefined : `test_setup ended with exit code ${result.exitCode ?? 'none'}`;
}

interface PatchOutcome {
  readonly run?: SuiteRun;
  readonly reason?: NonNullable<PatchGrade['reason']>;
  readonly why?: string;
  readonly appliedBy?: string;
  readonly restored?: readonly string[];
  readonly testMs: number;
}

function toGrade(task: SweTask, { run, restored = [], ...rest }: PatchOutcome): PatchGrade {
  const verdict = run?.verdict ?? judgeSuite(task, new Map());
  const broken = run?.fault === undefined ? {} : { reason: 'tests_broken' as const, why: run.fault };
  const isSound = run !== undefined && run.fault === undefined;
  return {
    ...verdict,
    resolved: verdict.resolved && isSound,
    ...rest,
    ...broken,
    restored,
    forged: run?.forged ?? [],
    isAttested: run?.isAttested ?? false,
    ...(run?.exitCode === undefined ? {} : { exitCode: run.exitCode }),
    log: run?.log ?? '',
  };
}
