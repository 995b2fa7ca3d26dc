// The swe scenario: an agent repairs a bug in a repository. We take the diff ourselves, apply it in a sandbox that the agent never touched,
// restore the tests, and grade what they do.

import { systemClock } from '@millrace/base/clock';
import { definedOf, RolloutError } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import { shapeReward } from '../reward/shaping.ts';
import { withoutRoutingFields } from '../row.ts';
import type { Scenario, TaskTrial } from '../scenario.ts';
import { Prompts } from '../tools/prompts.ts';
import { labelOf } from '../tools/tool-names.ts';
import { gradePatch, type PatchGrade } from './grade/grade-patch.ts';
import { readChanges, takeChanges } from './repository/changes.ts';
import { prepareRepository } from './repository/prepare.ts';
import { type Diff, takeDiff } from './repository/take-diff.ts';
import { type SweTask, sweTask } from './task/swe-task.ts';

/** In milliseconds of each second: the rest is for the sandboxes. */
const gradeShare = 900;
/** For everything but the tests. */
const spareS = 600;
/** The times of files are up to this much older than the clock. */
const fileClockMs = 15;
/** How many tasks are remembered as having run. */
const maxProven = 10_000;
const maxNames = 20;

/** When the agent got its sandbox. */
interface AgentStart {
  readonly sinceMs: number;
}

export function makeSweScenario(): Scenario<SweTask> {
  const proven = new Set<string>();
  return {
    name: 'swe',
    task: sweTask,
    fromInstance: (instance) => withoutRoutingFields(instance, ['instance_id']),
    sandbox: specOf,
    prepare: { key: keyOf, run: ({ task, sandbox, limits, signal }) => prepare(sandbox, task, limits.init_timeout_s * 1000, signal) },

    async init({ task, sandbox, signal, prompts = new Prompts() }) {
      const enter = ['git config --global --add safe.directory "*"', `cd ${quote(task.workdir)}`, task.activate].filter(
        (line) => line !== '',
      );
      const { end } = await sandbox.runShell(enter.join('\n'), { timeoutMs: 60_000, signal });
      if (end !== 'exited') throw new RolloutError('sandbox-failed', `the shell did not enter ${task.workdir}: ${end}`);
      const state: AgentStart = { sinceMs: systemClock.now() - fileClockMs };
      return { messages: [{ role: 'user', content: renderProblem(task, prompts) }], tools: task.tools, state };
    },

    async collect({ task, sandbox, state, signal }) {
      const { sinceMs } = state as AgentStart;
      return await takeChanges(sandbox, task.workdir, { signal, sinceMs }).catch((error) => {
        if (!(error instanceof RolloutError) || error.code !== 'not-found') throw error;
        throw new RolloutError('policy-failed', `the agent removed the repository: ${error.message}`);
      });
    },

    // The tests run a second time as their control.
    evaluateTimeoutS: ({ test_timeout_s }) => 2 * test_timeout_s + spareS,
    lowestReward: ({ shaping: { range } }) => range[0],
    highestReward: ({ shaping: { range } }) => range[1],

    async evaluate({ task, artifact, sampledTokens, openSandbox, limits, signal }) {
      const timeoutMs = limits.evaluate_timeout_s * gradeShare;
      const { patch, paths } = await makeDiff(await openSandbox(), task, { artifact, timeoutMs, signal });
      const measured = { hasFormat: patch.length > 0, sampledTokens };
      if (patch.length === 0) return shapeReward(task.shaping, { correctness: 0, ...measured }, { git_patch: '', reason: 'empty_patch' });
      if (proven.size > maxProven) proven.clear();
      const grade = await gradePatch({ task, patch, paths, openSandbox, stepMs: timeoutMs, proven, signal });
      return shapeReward(
        task.shaping,
        { correctness: grade.resolved ? 1 : 0, ...measured },
        { git_patch: patch.toString('utf8'), ...describe(grade) },
      );
    },

    async trial({ task, solution, openSandbox, limits, signal }) {
      const patch = solution === 'gold' ? task.patch : '';
      if (solution === 'gold' && patch === '')
        return { isRight: false, tests: {}, why: 'the task has no patch, so its solution cannot be checked' };
      return toTrial(await gradePatch({ task, patch, openSandbox, stepMs: limits.evaluate_timeout_s * gradeShare, signal }));
    },
  };
}

function specOf({ image, memory_mib: memoryMiB, disk_mib: diskMiB }: SweTask): SandboxSpec {
  const limits = definedOf({ memoryMiB, diskMiB });
  return { ...definedOf({ image }), ...(Object.keys(limits).length > 0 ? { limits } : {}) };
}

const keyOf = ({ instance_id, base_commit, workdir, setup, setup_patch, hidden }: SweTask): string =>
  JSON.stringify([instance_id, base_commit, workdir, setup, setup_patch, hidden]);

const prepare = (sandbox: Sandbox, task: SweTask, timeoutMs: number, signal: AbortSignal): Promise<void> =>
  prepareRepository(sandbox, task, { purpose: 'agent', timeoutMs, signal });

interface DiffContext {
  readonly artifact: Buffer;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

async function makeDiff(sandbox: Sandbox, task: SweTask, { artifact, timeoutMs, signal }: DiffContext): Promise<Diff> {
  await prepareRepository(sandbox, task, { purpose: 'diff', timeoutMs, signal });
  return await takeDiff(sandbox, readChanges(artifact), { workdir: task.workdir, hidden: task.hidden, timeoutMs, signal });
}

function renderProblem(task: SweTask, prompts: Prompts): string {
  const end = task.tools.find((name) => name === 'finish' || name === 'submit');
  const ending = end === undefined ? 'say so' : `call ${labelOf(end)}`;
  return prompts.render('swe', { repo: task.repo, workdir: task.workdir, problem_statement: task.problem_statement, ending });
}

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

function describe(grade: PatchGrade): Record<string, unknown> {
  const { failToPass, passToPass } = grade;
  return definedOf({
    reason: grade.reason,
    why: grade.why,
    applied_by: grade.appliedBy,
    fail_to_pass: { passed: failToPass.passed.length, failed: failToPass.failed.slice(0, maxNames) },
    pass_to_pass: { passed: passToPass.passed.length, failed: passToPass.failed.slice(0, maxNames) },
    restored: grade.restored.length === 0 ? undefined : grade.restored.slice(0, maxNames),
    forged: grade.forged.length === 0 ? undefined : grade.forged.slice(0, maxNames),
    attested: grade.isAttested,
    exit_code: grade.exitCode,
    test_ms: Math.round(grade.testMs),
    log_tail: grade.log.slice(-2000),
  });
}

function toTrial({ resolved, failToPass, passToPass, why, log }: PatchGrade): TaskTrial {
  const passed = [...failToPass.passed, ...passToPass.passed].map((name) => [name, true] as const);
  const failed = [...failToPass.failed, ...passToPass.failed].map((name) => [name, false] as const);
  const [first] = [...failToPass.failed, ...passToPass.failed];
  const reason = why ?? (first === undefined ? undefined : `${first} did not pass: ${lastLines(log)}`);
  return {
    isRight: resolved,
    tests: Object.fromEntries([...passed, ...failed]),
    ...(resolved || reason === undefined ? {} : { why: reason }),
  };
}

const lastLines = (log: string): string => log.trim().split('\n').slice(-3).join(' | ').slice(-300);
