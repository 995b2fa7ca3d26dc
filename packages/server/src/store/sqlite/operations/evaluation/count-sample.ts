// Adds what a sample measured to the counts of its evaluation, in the transaction that ends it. A rollout that is no sample costs one
// lookup by key.

import type { EvaluationId, Failure, RolloutResult } from '@millrace/protocol';
import { correctTolerance } from '../../../evaluation-store.ts';
import type { Transaction } from '../../engine/connection.ts';

export interface SampleEnd {
  readonly state: 'done' | 'failed' | 'cancelled';
  readonly result?: RolloutResult;
  readonly failure?: Pick<Failure, 'blame' | 'code'>;
}

interface SampleRow {
  readonly evaluation_seq: number;
  readonly task_index: number;
}

/** An evaluation that its last sample has just ended. */
export interface FinishedEvaluation {
  readonly evaluation: EvaluationId;
  readonly samples: number;
}

export function countSample(transaction: Transaction, rolloutSeq: number, end: SampleEnd): FinishedEvaluation | undefined {
  const sql = 'SELECT evaluation_seq, task_index FROM evaluation_samples WHERE seq = ?';
  const row = transaction.one<SampleRow>(sql, rolloutSeq);
  return row && addEnd(transaction, { evaluation: row.evaluation_seq, task: row.task_index }, end);
}

/** A cancelled sample has no failure of its own; it is counted as one, so that every sample without a reward has a reason. */
const cancelled = { blame: 'caller', code: 'cancelled' } as const;

export function addEnd(
  transaction: Transaction,
  { evaluation, task }: { readonly evaluation: number; readonly task: number },
  end: SampleEnd,
): FinishedEvaluation | undefined {
  const { result } = end;
  const reward = end.state === 'done' ? (result?.reward ?? undefined) : undefined;
  const failure = end.failure ?? (end.state === 'cancelled' ? cancelled : undefined);
  const score = `UPDATE evaluation_scores SET ended = ended + 1, scored = scored + ?3, reward_sum = reward_sum + ?4,
    correct = correct + (?3 = 1 AND ?4 >= correct_at - ?5) WHERE evaluation_seq = ?1 AND task_index = ?2`;
  transaction.run(score, evaluation, task, Number(reward !== undefined), reward ?? 0, correctTolerance);
  if (failure) {
    const sql = `INSERT INTO evaluation_failures VALUES (?, ?, ?, 1, ?)
      ON CONFLICT DO UPDATE SET samples = samples + 1, scored = scored + excluded.scored`;
    transaction.run(sql, evaluation, failure.blame, failure.code, Number(reward !== undefined));
  }
  if (result?.stop_reason) {
    const sql = 'INSERT INTO evaluation_stops VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET samples = samples + 1';
    transaction.run(sql, evaluation, result.stop_reason);
  }
  return addTotals(transaction, evaluation, result);
}

interface TotalsRow {
  readonly id: EvaluationId;
  readonly state: string;
  readonly tasks: number;
  readonly ended: number;
  readonly n: number;
}

function addTotals(transaction: Transaction, seq: number, result: RolloutResult | undefined): FinishedEvaluation | undefined {
  const { first = null, last = null } = result?.policy_versions ?? {};
  const sql = `UPDATE evaluations SET ended = ended + 1, turns = turns + ?2, sampled_tokens = sampled_tokens + ?3,
    first_version = min(coalesce(first_version, ?4), coalesce(?4, first_version)),
    last_version = max(coalesce(last_version, ?5), coalesce(?5, last_version))
    WHERE seq = ?1 RETURNING id, state, tasks, ended, json_extract(plan, '$.n') AS n`;
  const row = transaction.one<TotalsRow>(sql, seq, result?.turns ?? 0, result?.tokens.sampled ?? 0, first, last);
  if (row?.state !== 'open' || row.ended < row.tasks * row.n) return undefined;
  transaction.run("UPDATE evaluations SET state = 'done', ended_at = ? WHERE seq = ?", transaction.nowMs, seq);
  return { evaluation: row.id, samples: row.ended };
}
