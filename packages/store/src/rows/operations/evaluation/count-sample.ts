// Adds what a sample measured to the counts of its evaluation, in the transaction that ends it. A rollout that is no sample costs one
// lookup by key.

import type { EvaluationId, Failure, RolloutResult, RolloutState } from '@millrace/protocol';
import { correctTolerance } from '../../../evaluation-store.ts';
import type { Transaction } from '../../../transaction.ts';

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

export async function countSample(transaction: Transaction, rolloutSeq: number, end: SampleEnd): Promise<FinishedEvaluation | undefined> {
  const sql = 'SELECT evaluation_seq AS evaluation, task_index AS task FROM evaluation_samples WHERE seq = ?';
  const place = await transaction.one<SamplePlace>(sql, rolloutSeq);
  return place && (await addEnd(transaction, place, end));
}

/** The rows that a sample belongs to. */
interface SamplePlace {
  readonly evaluation: number;
  readonly task: number;
}

/** Subtracts what an ended sample was counted as, before another takes its place. */
export async function uncountSample(transaction: Transaction, place: SamplePlace, end: SampleEnd): Promise<void> {
  await change(transaction, place, { ...end, by: -1 });
}

export async function addEnd(transaction: Transaction, place: SamplePlace, end: SampleEnd): Promise<FinishedEvaluation | undefined> {
  const row = await change(transaction, place, { ...end, by: 1 });
  if (row?.state !== 'open' || row.ended < row.tasks * row.n) return undefined;
  await transaction.run("UPDATE evaluations SET state = 'done', ended_at = ? WHERE seq = ?", transaction.nowMs, place.evaluation);
  return { evaluation: row.id, samples: row.ended };
}

/** A cancelled sample has no failure of its own; it is counted as one, so that every sample without a reward has a reason. */
const cancelled = { blame: 'caller', code: 'cancelled' } as const;

async function change(
  transaction: Transaction,
  { evaluation, task }: SamplePlace,
  end: SampleEnd & { readonly by: 1 | -1 },
): Promise<TotalsRow | undefined> {
  const { result, by } = end;
  const reward = end.state === 'done' ? (result?.reward ?? undefined) : undefined;
  const failure = end.failure ?? (end.state === 'cancelled' ? cancelled : undefined);
  // Locked first, so that two samples of one evaluation cannot wait for each other.
  await transaction.one('SELECT seq FROM evaluations WHERE seq = ? FOR UPDATE', evaluation);
  const score = `UPDATE evaluation_scores SET ended = ended + ?, scored = scored + ?, reward_sum = reward_sum + ?,
    correct = correct + CASE WHEN correct_at <= ? THEN ? ELSE 0 END WHERE evaluation_seq = ? AND task_index = ?`;
  const scored = reward === undefined ? 0 : by;
  await transaction.run(score, by, scored, by * (reward ?? 0), (reward ?? 0) + correctTolerance, scored, evaluation, task);
  if (failure) {
    const sql = `INSERT INTO evaluation_failures VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (evaluation_seq, blame, code) DO UPDATE SET samples = evaluation_failures.samples + excluded.samples,
      scored = evaluation_failures.scored + excluded.scored`;
    await transaction.run(sql, evaluation, failure.blame, failure.code, by, by * Number(reward !== undefined));
  }
  if (result?.stop_reason) {
    const sql = `INSERT INTO evaluation_stops VALUES (?, ?, ?)
      ON CONFLICT (evaluation_seq, reason) DO UPDATE SET samples = evaluation_stops.samples + excluded.samples`;
    await transaction.run(sql, evaluation, result.stop_reason, by);
  }
  return await addTotals(transaction, evaluation, { result, by });
}

interface TotalsRow {
  readonly id: EvaluationId;
  readonly state: string;
  readonly tasks: number;
  readonly ended: number;
  readonly n: number;
}

async function addTotals(
  transaction: Transaction,
  seq: number,
  { result, by }: { readonly result: RolloutResult | undefined; readonly by: number },
): Promise<TotalsRow | undefined> {
  const { first = null, last = null } = result?.policy_versions ?? {};
  const sql = `UPDATE evaluations SET ended = ended + ?2, turns = turns + ?3, sampled_tokens = sampled_tokens + ?4,
    first_version = CASE WHEN first_version <= ?5 THEN first_version ELSE coalesce(?5, first_version) END,
    last_version = CASE WHEN last_version >= ?6 THEN last_version ELSE coalesce(?6, last_version) END
    WHERE seq = ?1 RETURNING id, state, tasks, ended, json_extract(plan, '$.n') AS n`;
  return await transaction.one<TotalsRow>(sql, seq, by, by * (result?.turns ?? 0), by * (result?.tokens.sampled ?? 0), first, last);
}
