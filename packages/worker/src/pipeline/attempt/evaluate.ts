// Evaluating an attempt. What disturbed the verifier is tried again. A verifier that breaks is held against a rollout of an agent that did
// nothing: if that can be judged, what this agent left broke the verifier, and its reward is the lowest. Otherwise the verifier is at fault.

import { RolloutError } from '@millrace/protocol';
import { findDisturbance } from '@millrace/sandbox';
import { isShownFault, type Score } from '@millrace/scenarios';
import { isApart, toSharedDelay } from './apart.ts';
import type { AttemptRecord } from './attempt-record.ts';
import { canJudgeNothing } from './control.ts';
import { judge, openOwnTime, type ToEvaluate } from './judge.ts';
import type { StageDeps } from './stage-deps.ts';

/** How often an evaluation is started at most. What ends it five times is not a bad moment of the machine. */
const tries = 5;

export async function evaluateAttempt(deps: StageDeps, record: AttemptRecord, prepared: ToEvaluate): Promise<void> {
  let isSuspect = false;
  for (let number = 1; ; number += 1) {
    try {
      record.score = await judgeOnce(deps, record, { ...prepared, isLastTry: number >= tries });
      return;
    } catch (error) {
      prepared.signal.throwIfAborted();
      const seen = record.errorOf(error);
      const disturbance = findDisturbance(seen);
      if (disturbance === 'starved' || (disturbance !== undefined && number >= tries)) throw error;
      await record.sandbox.close();
      if (disturbance !== undefined) continue;
      if (!isBreak(seen)) throw error;
      const isLate = seen.code === 'evaluate-timeout'; // measured on its own clock: a second time would be the same
      if (isLate && prepared.scenario.apart && !isApart(record)) throw toSharedDelay(seen);
      if (number === 1 && !isLate) continue;
      if (!isSuspect && !(await canJudgeNothing(deps, record, prepared))) throw error;
      if (isSuspect || isLate) throw toPolicyFault(seen);
      isSuspect = true;
    }
  }
}

/**
 * Whether the verifier gave no verdict, and does not say itself that the agent is not to blame. The death of the process of a scenario is no
 * break: it takes along what all its rollouts had there, so judging again shows nothing, and the rollout is retried as a whole.
 */
function isBreak(error: RolloutError): boolean {
  const { code } = error;
  if (code === 'evaluate-failed') return !isShownFault(error);
  return code === 'evaluate-timeout' || code === 'sandbox-refused';
}

export function toPolicyFault(error: RolloutError): RolloutError {
  const how = error.code === 'evaluate-timeout' ? 'does not end' : 'breaks';
  const message = `the verifier ${how} on what the agent left, and judges an agent that did nothing: ${error.message}`;
  return new RolloutError('policy-failed', message, { cause: error });
}

/** Throws what the evaluation threw. */
export async function judgeOnce(
  deps: StageDeps,
  record: AttemptRecord,
  { artifact, isLastTry, ...prepared }: ToEvaluate & { readonly isLastTry: boolean },
): Promise<Score> {
  const { stop: end } = record;
  if (!end) throw new RolloutError('internal', 'evaluate started before run had ended');
  const sampledTokens =
    record.sampler?.ledger.segments.reduce((sum, { kind, tokenIds }) => sum + (kind === 'sampled' ? tokenIds.length : 0), 0) ?? 0;
  using time = await openOwnTime(deps, record, { ...prepared, isLastTry });
  try {
    return await judge(deps, { ...prepared, record, time, sandboxes: record.sandbox, end, artifact, sampledTokens });
  } finally {
    record.timings.evaluate_ms += time.deadline.chargedMs;
  }
}
