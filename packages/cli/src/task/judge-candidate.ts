// Judges one candidate of a task once: its own solution, nothing, or something wrong. The first two as the scenario tries them itself,
// where it can; everything else as a rollout is judged.

import { describeIssues, messageOf, RolloutError } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import { findDisturbance, OwnTime } from '@millrace/sandbox';
import { evaluateTimeoutOf, highestRewardOf, type Scenario, safeParseTask, type TaskTrial } from '@millrace/scenarios';
import { makeWrong } from '../attack/hackers/wrong.ts';
import { type PlayDeps, playAgent } from '../attack/play.ts';
import type { TaskLine } from './task-file.ts';

export const candidates = ['solution', 'empty', 'wrong'] as const;
export type CheckCandidate = (typeof candidates)[number];

export interface CandidateVerdict {
  readonly isRight: boolean;
  /** Null if there is no verdict. */
  readonly reward: number | null;
  /** Tests that the task names, by whether they passed. */
  readonly tests: Readonly<Record<string, boolean>>;
  readonly why?: string;
}

/** How often a trial is started at most. */
const tries = 3;

interface CandidateRun {
  readonly candidate: CheckCandidate;
  readonly signal: AbortSignal;
}

/** Undefined if the scenario has no way to judge its solution. Throws if the task cannot be read. */
export async function judgeOnce(deps: PlayDeps, line: TaskLine, judging: CandidateRun): Promise<CandidateVerdict | undefined> {
  const scenario = deps.scenarios.get(line.scenario);
  if (!scenario) throw new Error(`there is no scenario ${line.scenario}; there are ${deps.scenarios.names().join(', ')}`);
  const parsed = await safeParseTask(scenario, line.task);
  if (!parsed.success) throw new Error(describeIssues(parsed.error.issues));
  const { candidate, signal } = judging;
  if (candidate === 'wrong' || !scenario.trial)
    return candidate === 'solution' ? undefined : await playCandidate(deps, line, { scenario, task: parsed.data, ...judging });
  try {
    const solution = candidate === 'solution' ? 'gold' : 'empty';
    const { isRight, tests, why } = await tryOften(deps, { scenario, line, task: parsed.data, solution, signal });
    return { isRight, reward: isRight ? 1 : 0, tests, ...(why === undefined ? {} : { why }) };
  } catch (error) {
    signal.throwIfAborted();
    return {
      isRight: false,
      reward: null,
      tests: {},
      why: error instanceof RolloutError ? `${error.code}: ${error.message}` : messageOf(error),
    };
  }
}

async function playCandidate(
  deps: PlayDeps,
  line: TaskLine,
  { scenario, task, candidate, signal }: CandidateRun & { readonly scenario: Scenario; readonly task: unknown },
): Promise<CandidateVerdict> {
  const choose = candidate === 'wrong' ? makeWrong : () => ({});
  const { reward, failure, details } = await playAgent(deps, line, { choose, signal });
  const isRight = reward !== null && reward >= (await highestRewardOf(scenario, task));
  return { isRight, reward, tests: {}, why: failure ? `${failure.code}: ${failure.message}` : JSON.stringify(details).slice(0, 300) };
}

interface Solving {
  readonly scenario: Scenario;
  readonly line: TaskLine;
  readonly task: unknown;
  readonly solution: 'gold' | 'empty';
  readonly signal: AbortSignal;
}

/** What the machine disturbs is tried again, as in a rollout. */
async function tryOften(deps: PlayDeps, solving: Solving): Promise<TaskTrial> {
  for (let number = 1; ; number += 1) {
    try {
      return await runTrial(deps, { ...solving, isLastTry: number >= tries });
    } catch (error) {
      solving.signal.throwIfAborted();
      const isPassing = error instanceof RolloutError && findDisturbance(error) === 'passing';
      if (!isPassing || number >= tries) throw error;
    }
  }
}

/** On the clock of the programs themselves, as a rollout is judged. It sets up, solves and judges, so it has the time of all three. */
async function runTrial({ driver, layers, clock }: PlayDeps, solving: Solving & { readonly isLastTry: boolean }): Promise<TaskTrial> {
  const { scenario, task, solution, line, isLastTry } = solving;
  if (!scenario.trial) throw new Error(`the scenario ${scenario.name} has no \`trial\``);
  const { init_timeout_s, run_timeout_s, evaluate_timeout_s } = line.limits;
  const timeoutS = init_timeout_s + run_timeout_s + (await evaluateTimeoutOf(scenario, task, evaluate_timeout_s));
  using time = new OwnTime({ what: 'the check', timeoutMs: timeoutS * 1000, clock, signal: solving.signal, isLastTry });
  const { signal, deadline } = time;
  await using opened = new AsyncDisposableStack();
  const openSandbox = async (spec?: SandboxSpec) => {
    const wanted = spec ?? (await scenario.sandbox?.(task)) ?? {};
    return time.watch(opened.use(await deadline.uncharged(() => driver.open(wanted, { signal }))));
  };
  const openPrepared = async () => time.watch(opened.use(await openWithLayer({ driver, layers }, { ...solving, signal })));
  return await scenario.trial({ task, solution, openSandbox, openPrepared, limits: line.limits, signal });
}

/** What `prepare` does for several tasks is done once. */
async function openWithLayer(
  { driver, layers }: Pick<PlayDeps, 'driver' | 'layers'>,
  { scenario, task, line, signal }: Solving,
): Promise<Sandbox> {
  const spec = (await scenario.sandbox?.(task)) ?? {};
  const prepare = async (sandbox: Sandbox) => scenario.prepare?.run({ task, sandbox, limits: line.limits, signal });
  const key = await scenario.prepare?.key(task);
  const plan = { spec, key: JSON.stringify([scenario.name, key]), prepare, signal, uncharged: <T>(wait: () => Promise<T>) => wait() };
  await using layer = key === undefined ? undefined : await layers.open(plan); // the sandbox holds it from its start
  const sandbox = await driver.open({ ...spec, ...(layer && { layer: layer.folder }) }, { signal });
  if (layer === undefined) await prepare(sandbox);
  return sandbox;
}
