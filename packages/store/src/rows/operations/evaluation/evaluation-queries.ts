// Queries for evaluations: one with its counts, a page, its tasks with their samples, and those with tasks that have not begun.

import type { EvaluationFailure, EvaluationId, EvaluationState, RolloutId, RolloutState, StopReason } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import type {
  EvaluationPlan,
  EvaluationRecord,
  SampleRecord,
  ScoreCount,
  TaskRecord,
  UnbegunEvaluation,
} from '../../../evaluation-store.ts';
import type { Transaction } from '../../../transaction.ts';

export interface EvaluationRow {
  readonly seq: number;
  readonly id: EvaluationId;
  readonly digest: string;
  readonly state: EvaluationState;
  readonly plan: string;
  readonly tasks: number;
  readonly begun: number;
  readonly ended: number;
  readonly turns: number;
  readonly sampled_tokens: number;
  readonly first_version: number | null;
  readonly last_version: number | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

/** For a change: no other call can change the evaluation until the transaction ends. */
export async function lockEvaluation(transaction: Transaction, id: EvaluationId): Promise<EvaluationRow | undefined> {
  return await transaction.one<EvaluationRow>('SELECT * FROM evaluations WHERE id = ? FOR UPDATE', id);
}

export async function readEvaluation(transaction: Transaction, id: EvaluationId): Promise<EvaluationRow | undefined> {
  return await transaction.one<EvaluationRow>('SELECT * FROM evaluations WHERE id = ?', id);
}

export function readEvaluationPlan({ plan }: Pick<EvaluationRow, 'plan'>): EvaluationPlan {
  return JSON.parse(plan);
}

export async function evaluation(transaction: Transaction, id: EvaluationId): Promise<EvaluationRecord | undefined> {
  const row = await readEvaluation(transaction, id);
  return row && (await toEvaluationRecord(transaction, row));
}

export async function toEvaluationRecord(transaction: Transaction, row: EvaluationRow): Promise<EvaluationRecord> {
  const { seq, first_version: first, last_version: last } = row;
  const scores = 'SELECT ended, scored, correct, count(*) AS tasks FROM evaluation_scores WHERE evaluation_seq = ? GROUP BY 1, 2, 3';
  const failures = `SELECT blame, code, samples, scored FROM evaluation_failures
    WHERE evaluation_seq = ? AND samples > 0 ORDER BY samples DESC, blame, code`;
  const stops = await transaction.all<{ reason: StopReason; samples: number }>(
    'SELECT reason, samples FROM evaluation_stops WHERE evaluation_seq = ? AND samples > 0 ORDER BY samples DESC, reason',
    seq,
  );
  return {
    id: row.id,
    plan: readEvaluationPlan(row),
    state: row.state,
    tasks: row.tasks,
    begunTasks: row.begun,
    scores: await transaction.all<ScoreCount>(scores, seq),
    rewards: await readRewards(transaction, seq),
    failures: await transaction.all<EvaluationFailure>(failures, seq),
    stopReasons: Object.fromEntries(stops.map(({ reason, samples }) => [reason, samples])),
    turns: row.turns,
    sampledTokens: row.sampled_tokens,
    createdAtMs: row.created_at,
    ...definedOf({ versions: first === null || last === null ? undefined : { first, last }, endedAtMs: row.ended_at ?? undefined }),
  };
}

/** In two passes: the difference of large sums would lose the digits of a small error. */
async function readRewards(transaction: Transaction, seq: number): Promise<EvaluationRecord['rewards']> {
  const sums =
    'SELECT coalesce(sum(reward_sum), 0) AS sum, coalesce(sum(scored), 0) AS scored FROM evaluation_scores WHERE evaluation_seq = ?';
  const { sum, scored } = (await transaction.one<{ sum: number; scored: number }>(sums, seq)) ?? { sum: 0, scored: 0 };
  const squares = `SELECT coalesce(sum((reward_sum - scored * CAST(?2 AS DOUBLE PRECISION)) * (reward_sum - scored * CAST(?2 AS DOUBLE PRECISION))), 0) AS squares FROM evaluation_scores
    WHERE evaluation_seq = ?1`;
  return { sum, squares: (await transaction.one<{ squares: number }>(squares, seq, scored === 0 ? 0 : sum / scored))?.squares ?? 0 };
}

export async function unbegunEvaluations(transaction: Transaction): Promise<UnbegunEvaluation[]> {
  const isOwn = `(name = evaluations.id OR substr(name, 1, length(evaluations.id) + 1) = evaluations.id || '\n')`;
  const queued = `(SELECT coalesce(sum(queued), 0) FROM classes WHERE kind = 'evaluation' AND ${isOwn})`;
  const sql = `SELECT *, ${queued} AS queued FROM evaluations WHERE state = 'open' AND begun < tasks ORDER BY seq`;
  return (await transaction.all<EvaluationRow & { readonly queued: number }>(sql)).map((row) => ({
    id: row.id,
    plan: readEvaluationPlan(row),
    tasks: row.tasks,
    begunTasks: row.begun,
    queued: row.queued,
  }));
}

interface TaskRow {
  readonly task_index: number;
  readonly body: string;
  readonly correct_at: number;
  readonly scored: number;
  readonly correct: number;
  readonly reward_sum: number;
}

interface SampleRow {
  readonly task_index: number;
  readonly id: RolloutId;
  readonly state: RolloutState;
  readonly result: string | null;
  readonly failure: string | null;
}

export async function evaluationTasks(
  transaction: Transaction,
  request: { readonly id: EvaluationId; readonly from: number; readonly limit: number },
): Promise<TaskRecord[]> {
  const row = await readEvaluation(transaction, request.id);
  if (!row) return [];
  const range = [row.seq, request.from, request.from + request.limit] as const;
  const where = 'WHERE evaluation_seq = ? AND task_index >= ? AND task_index < ?';
  const tasks = `SELECT * FROM evaluation_tasks JOIN evaluation_scores USING (evaluation_seq, task_index) ${where} ORDER BY task_index`;
  const samples = `SELECT task_index, id, state, result, failure FROM evaluation_samples JOIN rollouts USING (seq) ${where} AND is_replaced = 0
    ORDER BY task_index, rollouts.seq`;
  const byTask = Map.groupBy(await transaction.all<SampleRow>(samples, ...range), ({ task_index }) => task_index);
  return (await transaction.all<TaskRow>(tasks, ...range)).map((task) => ({
    index: task.task_index,
    task: JSON.parse(task.body),
    correctAt: task.correct_at,
    scored: task.scored,
    correct: task.correct,
    rewardSum: task.reward_sum,
    samples: (byTask.get(task.task_index) ?? []).map(toSample),
  }));
}

/** A reward counts only if the rollout is done. */
function toSample({ id, state, result, failure }: SampleRow): SampleRecord {
  const { reward, stop_reason }: { reward?: number | null; stop_reason?: StopReason | null } = JSON.parse(result ?? '{}');
  return {
    id,
    state,
    ...definedOf({
      reward: state === 'done' ? (reward ?? undefined) : undefined,
      stopReason: stop_reason ?? undefined,
      failure: failure === null ? undefined : JSON.parse(failure),
    }),
  };
}
