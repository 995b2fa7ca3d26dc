// Judges the results of some rollouts a second time: a verifier that gives the same artifact another reward is reported as flaky.

import { createHash } from 'node:crypto';
import type { Log } from '@millrace/base/log';
import { messageOf, RolloutError, type RolloutId } from '@millrace/protocol';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import { judgeOnce } from './evaluate.ts';
import type { StageDeps } from './stage-deps.ts';

/** Whether the rollout is in this share. The same rollout always is, or never. */
export function isRejudged(id: RolloutId, share: number): boolean {
  return createHash('sha256').update(id).digest().readUInt32BE() / 2 ** 32 < share;
}

/** Judges in fresh sandboxes, under the same limits. The first reward stays; what the second time showed is in the details. */
export async function rejudgeAttempt(
  deps: StageDeps & { readonly log: Log },
  record: AttemptRecord,
  prepared: Prepared & { readonly signal: AbortSignal; readonly artifact: Buffer },
): Promise<void> {
  const first = record.score;
  if (!first) return;
  const { id, submission } = record.claimed;
  await record.sandbox.close();
  const second = await judgeAgain(deps, record, prepared);
  if (second === undefined) return;
  const same = second === first.reward;
  if (!same) deps.log.warn('verdict-flaky', { rolloutId: id, scenario: submission.scenario, first: first.reward, second });
  record.score = { ...first, details: { ...first.details, rejudged: { reward: second, same } } };
}

/** The second reward; null if the verifier failed, and undefined if something else did. */
async function judgeAgain(...[deps, record, prepared]: Parameters<typeof rejudgeAttempt>): Promise<number | null | undefined> {
  try {
    return (await judgeOnce(deps, record, { ...prepared, isLastTry: true })).reward;
  } catch (error) {
    prepared.signal.throwIfAborted();
    const isOfVerifier = !(error instanceof RolloutError) || error.blame === 'verifier';
    deps.log.warn('rejudge-failed', { rolloutId: record.claimed.id, error: messageOf(error) });
    return isOfVerifier ? null : undefined;
  }
}
