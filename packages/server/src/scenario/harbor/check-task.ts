// Checks a Harbor task folder without a model: its solution must have the highest reward, an untouched environment must not, and repeats
// must agree.

import { messageOf } from '@millrace/protocol';
import type { Sandbox, SandboxDriver, SandboxSpec } from '../../sandbox/sandbox.ts';
import { runOracle } from './control.ts';
import { toScore } from './harbor.ts';
import { type HarborTask, harborTask } from './harbor-task.ts';

export interface HarborCheckOptions {
  readonly driver: Pick<SandboxDriver, 'open'>;
  /** How many times the solution is run; 1 by default. */
  readonly repeats?: number;
  /** Values of the variables in task.toml. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface HarborCheckRun {
  readonly kind: 'solution' | 'empty';
  /** Absent if the check reported none. */
  readonly reward?: number;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface HarborCheck {
  readonly name: string;
  readonly runs: readonly HarborCheckRun[];
  /** What is wrong with the task; empty if it is good. */
  readonly problems: readonly string[];
}

/** Throws an Error that names the file if the folder cannot be run at all. */
export async function checkHarborTask(folder: string, options: HarborCheckOptions): Promise<HarborCheck> {
  const { repeats = 1, env = {} } = options;
  const parsed = await harborTask.safeParseAsync({ folder, env });
  if (!parsed.success) throw new Error(parsed.error.issues.map(({ message }) => message).join('; '));
  const task = parsed.data;
  const runs: HarborCheckRun[] = [await runOnce(task, 'empty', options)];
  if (task.folder.hasSolution) for (let n = 0; n < repeats; n += 1) runs.push(await runOnce(task, 'solution', options));
  return { name: task.folder.name, runs, problems: findProblems(task, runs) };
}

async function runOnce(task: HarborTask, kind: HarborCheckRun['kind'], { driver, signal }: HarborCheckOptions): Promise<HarborCheckRun> {
  await using stack = new AsyncDisposableStack();
  const openSandbox = async (spec: SandboxSpec): Promise<Sandbox> => stack.use(await driver.open(spec, { signal }));
  const timeoutMs = task.folder.toml.verifier.timeout_sec * 1000;
  try {
    const run = await runOracle(task, { solves: kind === 'solution', openSandbox, timeoutMs, signal });
    const score = toScore(task, run);
    if (score) return { kind, ...score, details: score.details ?? {} };
    return { kind, details: { no_reward: run.report.kind === 'none' ? run.report.reason : '', output: run.output } };
  } catch (error) {
    signal.throwIfAborted();
    return { kind, details: { error: messageOf(error) } };
  }
}

function findProblems({ folder, reward_range: [, highest] }: HarborTask, runs: readonly HarborCheckRun[]): string[] {
  const rewardsOf = (kind: HarborCheckRun['kind']) => runs.filter((run) => run.kind === kind).map(({ reward }) => reward);
  const solved = rewardsOf('solution');
  const [empty] = rewardsOf('empty');
  const text = (reward: number | undefined) => (reward === undefined ? 'no reward' : `the reward ${reward}`);
  return [
    ...(folder.hasSolution ? [] : ['there is no solution/solve.sh, so nothing shows that the task can be solved']),
    ...(new Set(solved).size > 1 ? [`the check is flaky: its solution has ${solved.map(text).join(', ')}`] : []),
    ...(solved.some((reward) => reward !== highest)
      ? [`its solution has ${text(solved.find((reward) => reward !== highest))}, not ${highest}`]
      : []),
    ...(empty === highest ? [`an untouched environment has ${text(empty)}`] : []),
  ];
}
