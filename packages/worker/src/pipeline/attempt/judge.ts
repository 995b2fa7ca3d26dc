// One call of a scenario's `evaluate`, in sandboxes and on a clock of its own.

import { raceSignal } from '@millrace/base/race';
import { definedOf } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import { OwnTime, type OwnTimeOptions } from '@millrace/sandbox';
import { type AgentEnd, evaluateSandboxOf, evaluateScenario, evaluateTimeoutOf, type Score } from '@millrace/scenarios';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import type { AttemptSandbox } from './attempt-sandbox.ts';
import type { StageDeps } from './stage-deps.ts';

export type ToEvaluate = Prepared & { readonly signal: AbortSignal; readonly artifact: Buffer };

interface TimedTask extends Pick<Prepared, 'scenario' | 'task'>, Pick<OwnTimeOptions, 'signal' | 'isLastTry'> {
  /** For the messages of errors; `evaluate` by default. */
  readonly what?: string;
}

/** The clock on which results of this task are judged, or collected. */
export async function openOwnTime({ clock }: StageDeps, { claimed }: AttemptRecord, timed: TimedTask): Promise<OwnTime> {
  const { scenario, task, signal, isLastTry, what = 'evaluate' } = timed;
  const timeoutS = await evaluateTimeoutOf(scenario, task, claimed.submission.limits.evaluate_timeout_s);
  return new OwnTime({ what, timeoutMs: timeoutS * 1000, clock, signal, isLastTry });
}

interface ToJudge extends Prepared {
  readonly record: AttemptRecord;
  readonly time: OwnTime;
  /** Holds the sandboxes that the verifier opens. */
  readonly sandboxes: AttemptSandbox;
  readonly end: AgentEnd;
  readonly artifact: Buffer;
  readonly sampledTokens: number;
}

export async function judge({ driver }: StageDeps, judged: ToJudge): Promise<Score> {
  const { scenario, task, opening, record, time, sandboxes, end, artifact, sampledTokens } = judged;
  const { signal, deadline } = time;
  const { limits } = record.claimed.submission;
  const openSandbox = async (wanted?: SandboxSpec): Promise<Sandbox> => {
    const spec = wanted ?? (await evaluateSandboxOf(scenario, task)) ?? {};
    return time.watch(await deadline.uncharged(() => sandboxes.open(() => driver.open(spec, { signal }))));
  };
  const context = { task, limits, signal, end, artifact, sampledTokens, openSandbox, ...definedOf({ state: opening.state }) };
  return await raceSignal(evaluateScenario(scenario, context), signal);
}
