// Running and collecting, with the blame settled where the scenario's own code broke on what the agent said or left: if it breaks on that
// again, and not on an agent that did nothing, the agent broke it, and its reward is the lowest.

import { raceSignal } from '@millrace/base/race';
import { definedOf } from '@millrace/protocol';
import { collectScenario } from '@millrace/scenarios';
import { isBrokenByAgent } from './agent-control.ts';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import { canJudgeNothing, type Running } from './control.ts';
import { toPolicyFault } from './evaluate.ts';
import { openOwnTime } from './judge.ts';
import type { StageDeps } from './stage-deps.ts';
import { runAttempt } from './stages.ts';

type ToRun = Prepared & Running;

export async function runSettled(deps: StageDeps, record: AttemptRecord, prepared: ToRun): Promise<Buffer> {
  try {
    await runAttempt(deps, record, prepared);
  } catch (error) {
    prepared.signal.throwIfAborted();
    const seen = record.errorOf(error);
    if (await isBrokenByAgent(seen, deps, record, prepared)) throw toPolicyFault(seen);
    throw error;
  }
  return await collectSettled(deps, record, prepared);
}

async function collectSettled(deps: StageDeps, record: AttemptRecord, prepared: ToRun): Promise<Buffer> {
  for (let number = 1; ; number += 1) {
    try {
      return await collectAttempt(deps, record, prepared);
    } catch (error) {
      prepared.signal.throwIfAborted();
      const seen = record.errorOf(error);
      if (seen.code !== 'run-failed') throw error;
      if (number === 1) continue;
      if (await canJudgeNothing(deps, record, { ...prepared, artifact: Buffer.alloc(0) })) throw toPolicyFault(seen);
      throw error;
    }
  }
}

/** Runs even if the agent's time is up, on the verifier's clock. A kill of its programs may be the agent's doing, and is not tried again. */
export async function collectAttempt(
  deps: StageDeps,
  record: AttemptRecord,
  prepared: Prepared & { signal: AbortSignal },
): Promise<Buffer> {
  const { scenario, task, sandbox, signal, opening } = prepared;
  const { limits } = record.claimed.submission;
  const { stop: end } = record;
  if (!sandbox || !end || !scenario.collect) return Buffer.alloc(0);
  const within = AbortSignal.any([signal, sandbox.died]);
  using time = await openOwnTime(deps, record, { what: 'collecting the results', scenario, task, signal: within, isLastTry: true });
  const context = { task, limits, signal: time.signal, sandbox: time.watch(sandbox), end, ...definedOf({ state: opening.state }) };
  return await raceSignal(collectScenario(scenario, context), time.signal);
}
