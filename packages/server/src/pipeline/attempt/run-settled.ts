// Running and collecting, with the blame settled where the scenario's own code broke on what the agent said or left: if it breaks on that
// again, and not on an agent that did nothing, the agent broke it, and its reward is the lowest.

import type { AttemptRecord, Prepared } from './attempt-record.ts';
import { collectAttempt } from './collect.ts';
import { canJudgeNothing, isRespondBrokenBy, type Running } from './control.ts';
import { toPolicyFault } from './evaluate.ts';
import { runAttempt, type StageDeps } from './stages.ts';

type ToRun = Prepared & Running;

export async function runSettled(deps: StageDeps, record: AttemptRecord, prepared: ToRun): Promise<Buffer> {
  try {
    await runAttempt(deps, record, prepared);
  } catch (error) {
    prepared.signal.throwIfAborted();
    const seen = record.errorOf(error);
    const text = record.sampler?.ledger.messages.findLast(({ role }) => role === 'assistant')?.content;
    const isSuspect = seen.code === 'run-failed' && prepared.opening.respond !== undefined && text !== undefined;
    if (isSuspect && (await isRespondBrokenBy(text, deps, record, prepared))) throw toPolicyFault(seen);
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
