// Adds what a sample measured to the counts of its evaluation, in the transaction that ends it. A rollout that is no sample costs one
// lookup by key.

import type { EvaluationId, Failure, RolloutResult, RolloutState } from '@millrace/protocol';
import { correctTolerance } from '../../../evaluation-store.ts';
import type { Transaction } from '../../engine/connection.ts';

export interface SampleEnd {
  readonly state: RolloutState;
  readonly result?: RolloutResult;
  readonly failure?: Pick<Failure, 'blame' | 'code'>;
}

/** An evaluation that its last sample has just ended. */
export interface FinishedEvaluation {
  readonly evaluation: EvaluationId;
  readonly samples: number;
}

export function countSample(transaction: Transaction, rolloutSeq: number, end: SampleEnd): FinishedEvaluation | undefined {
  const sql = 'SELECT evaluation_seq AS evaluation, task_index AS task FROM evaluation_samples WHERE seq = ?';
  const place = transaction.one<SamplePlace>(sql, rolloutSeq);
  return place && addEnd(transaction, place, end);
}

/** The rows that a sample belongs to. */
export interface SamplePlace {
  readonly evaluation: number;
  readonly task: number;
}

/** Subtracts what an ended sample was counted as, before another takes its place. */
export function uncountSample(transaction: Transaction, place: SamplePlace, end: SampleEnd): void {
  change(transaction, place, { ...end, by: -1 });
}

export function addEnd(transaction: Transaction, place: SamplePlace, end: SampleEnd): FinishedEvaluation | undefined {
  const row = change(transaction, place, { ...end, by: 1 });
  if (row?.state !== 'open' || row.ended < row.tasks * row.n) return undefined;
  transaction.run("UPDATE evaluations SET state = 'done', ended_at = ? WHERE seq = ?", transaction.nowMs, place.evaluation);
  return { evaluation: row.id, samples: row.ended };
}

/** A cancelled sample has no failure of its own; it is counted as one, so that every sample without a reward has a reason. */
const cancelled = { blame: 'caller', code: 'cancelled' } as const;

function change(
  transaction: Transaction,
  { evaluation, task }: SamplePlace,
  end: SampleEnd & { readonly by: 1 | -1 },
): TotalsRow | undefined {
  const { result, by } = end;
  const reward = end.state === 'done' ? (result?.reward ?? undefined) : undefined;
  const failure = end.failure ?? (end.state === 'cancelled' ? cancelled : undefined);
  const score = `UPDATE evaluation_scores SET ended = ended + ?6, scored = scored + ?6 * ?3, reward_sum = reward_sum + ?6 * ?4,
    correct = correct + ?6 * (?3 = 1 AND ?4 >= correct_at - ?5) WHERE evaluation_seq = ?1 AND task_index = ?2`;
  transaction.run(score, evaluation, task, Number(reward !== undefined), reward ?? 0, correctTolerance, by);
  if (failure) {
    const sql = `INSERT INTO evaluation_failures VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET samples = samples + excluded.samples, scored = scored + excluded.scored`;
    transaction.run(sql, evaluation, failure.blame, failure.code, by, by * Number(reward !== undefined));
  }
  if (result?.stop_reason) {
    const sql = 'INSERT INTO evaluation_stops VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET samples = samples + excluded.samples';
    transaction.run(sql, evaluation, result.stop_reason, by);
  }
  return addTotals(transaction, evaluation, { result, by });
}

interface TotalsRow {
  readonly id: EvaluationId;
  readonly state: string;
  readonly tasks: number;
  readonly ended: number;
  readonly n: number;
}

function addTotals(
  transaction: Transaction,
  seq: number,
  { result, by }: { readonly result: RolloutResult | undefined; readonly by: number },
): TotalsRow | undefined {
  const { first = null, last = null } = result?.policy_versions ?? {};
  const sql = `UPDATE evaluations SET ended = ended + ?6, turns = turns + ?6 * ?2, sampled_tokens = sampled_tokens + ?6 * ?3,
    first_version = min(coalesce(first_version, ?4), coalesce(?4, first_version)),
    last_version = max(coalesce(last_version, ?5), coalesce(?5, last_version))
    WHERE seq = ?1 RETURNING id, state, tasks, ended, json_extract(plan, '$.n') AS n`;
  return transaction.one<TotalsRow>(sql, seq, result?.turns ?? 0, result?.tokens.sampled ?? 0, first, last, by);
}
