// Evaluations as rows: creating one, adding the samples of its next tasks, sampling again what has no reward, cancelling it, and
// deleting it after its time.

import type { EvaluationId, EvaluationState, GroupId, RolloutId, RolloutState } from '@millrace/protocol';
import { definedOf, idPattern } from '@millrace/protocol/plain';
import type { EvaluationRecord, NewEvaluation } from '../evaluation-store.ts';
import type { Transaction } from '../transaction.ts';
import { rankOf } from '../work-class.ts';
import { deleteClasses, openClass } from './operations/classes.ts';
import { addEnd, type SampleEnd, uncountSample } from './operations/evaluation/count-sample.ts';
import {
  type EvaluationRow,
  lockEvaluation,
  readEvaluation,
  readEvaluationPlan,
  toEvaluationRecord,
} from './operations/evaluation/evaluation-queries.ts';
import { parseCursor } from './operations/queries.ts';
import { deleteRollouts, openBudget, type RetainedSlice, rowsPerStep } from './operations/retention.ts';
import { cancel, insertRollouts, type RefusesNew, refuseIfFull, type StoredSubmission } from './operations/submit.ts';
import { appendFinished } from './operations/transitions.ts';

export async function createEvaluation(
  transaction: Transaction,
  { id, digest, plan, tasks, full }: NewEvaluation & RefusesNew,
): Promise<'created' | 'known' | 'conflict'> {
  const known = await readEvaluation(transaction, id);
  if (known) return known.digest === digest ? 'known' : 'conflict';
  refuseIfFull({ full });
  const sql = `INSERT INTO evaluations (id, digest, state, plan, tasks, created_at) VALUES (?, ?, 'open', ?, ?, ?) RETURNING seq`;
  const row = await transaction.one<{ seq: number }>(sql, id, digest, JSON.stringify(plan), tasks.length, transaction.nowMs);
  const seq = row?.seq ?? 0;
  await transaction.insert(
    'evaluation_tasks (evaluation_seq, task_index, body)',
    tasks.map(({ task }, index) => [seq, index, JSON.stringify(task)]),
  );
  await transaction.insert(
    'evaluation_scores (evaluation_seq, task_index, correct_at)',
    tasks.map(({ correctAt }, index) => [seq, index, correctAt]),
  );
  const data = { evaluation: id, scenario: plan.scenario, tasks: tasks.length, n: plan.n };
  await transaction.appendEvent({ kind: 'evaluation-open', data });
  return 'created';
}

interface EvaluationFilter {
  readonly state?: EvaluationState;
  readonly after?: string;
  readonly limit: number;
}

export async function evaluations(
  transaction: Transaction,
  filter: EvaluationFilter,
): Promise<{ evaluations: EvaluationRecord[]; next?: string }> {
  const { state = null, limit } = filter;
  const sql = 'SELECT * FROM evaluations WHERE seq > ?1 AND state = coalesce(?2, state) ORDER BY seq LIMIT ?3';
  const rows = await transaction.all<EvaluationRow>(sql, parseCursor(filter.after), state, limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    evaluations: await Array.fromAsync(page, (row) => toEvaluationRecord(transaction, row)),
    ...definedOf({ next: last && rows.length > limit ? String(last.seq) : undefined }),
  };
}

interface NextTasks {
  readonly id: EvaluationId;
  readonly begun: number;
  readonly samples: readonly (readonly StoredSubmission[])[];
}

export async function beginTasks(transaction: Transaction, { id, begun, samples }: NextTasks): Promise<boolean> {
  const row = await lockEvaluation(transaction, id);
  if (row?.state !== 'open' || row.begun !== begun || begun + samples.length > row.tasks) return false;
  await transaction.run('UPDATE evaluations SET begun = begun + ? WHERE seq = ?', samples.length, row.seq);
  const own = await openOwnClass(transaction, row);
  for (const [index, rollouts] of samples.entries())
    for (const rollout of rollouts) await addSample(transaction, { evaluation: row.seq, task: begun + index, class: own }, rollout);
  return true;
}

async function openOwnClass(transaction: Transaction, row: EvaluationRow): Promise<number> {
  const { priority, weight = 1, requires } = readEvaluationPlan(row);
  return await openClass(transaction, { kind: 'evaluation', name: row.id, weight, requires }, rankOf({ priority }));
}

async function addSample(
  transaction: Transaction,
  sample: { readonly evaluation: number; readonly task: number; readonly class: number },
  rollout: StoredSubmission,
): Promise<void> {
  if ((await transaction.one('SELECT seq FROM rollouts WHERE id = ?', rollout.id)) !== undefined) {
    await appendFinished(
      transaction,
      await addEnd(transaction, sample, { state: 'failed', failure: { blame: 'caller', code: 'conflict' } }),
    );
    return;
  }
  const [seq = 0] = await insertRollouts(transaction, [{ ...rollout, state: 'queued', class: sample.class, isSibling: true }]);
  const sql = 'INSERT INTO evaluation_samples (seq, evaluation_seq, task_index) VALUES (?, ?, ?)';
  await transaction.run(sql, seq, sample.evaluation, sample.task);
}

interface UnscoredRow {
  readonly seq: number;
  readonly id: RolloutId;
  readonly task_index: number;
  readonly scenario: string;
  readonly group_id: GroupId;
  readonly state: RolloutState;
  readonly result: string | null;
  readonly failure: string | null;
  readonly body: string;
}

const unscoredSamples = `SELECT seq, id, task_index, scenario, group_id, state, result, failure, body
  FROM evaluation_samples JOIN rollouts USING (seq) JOIN submissions USING (seq)
  WHERE evaluation_seq = ? AND is_replaced = 0 AND ended_at IS NOT NULL
    AND (state <> 'done' OR json_extract(result, '$.reward') IS NULL) ORDER BY task_index, seq LIMIT ?`;

export async function retryUnscored(
  transaction: Transaction,
  { id, limit, full }: { readonly id: EvaluationId; readonly limit: number } & RefusesNew,
): Promise<number | 'unknown' | 'cancelled'> {
  const row = await lockEvaluation(transaction, id);
  if (!row || row.state === 'cancelled') return row ? 'cancelled' : 'unknown';
  const found = await transaction.all<UnscoredRow>(unscoredSamples, row.seq, limit);
  if (found.length === 0) return 0;
  refuseIfFull({ full });
  await transaction.run("UPDATE evaluations SET state = 'open', ended_at = NULL WHERE seq = ?", row.seq);
  const own = await openOwnClass(transaction, row);
  for (const sample of found) {
    const place = { evaluation: row.seq, task: sample.task_index };
    await uncountSample(transaction, place, toEnd(sample));
    await transaction.run('UPDATE evaluation_samples SET is_replaced = 1 WHERE seq = ?', sample.seq);
    await addSample(transaction, { ...place, class: own }, toReplacement(sample));
  }
  await transaction.appendEvent({ kind: 'evaluation-open', data: { evaluation: id, retried: found.length } });
  return found.length;
}

function toEnd({ state, result, failure }: UnscoredRow): SampleEnd {
  const parse = (text: string | null) => (text === null ? undefined : JSON.parse(text));
  return { state, ...definedOf({ result: parse(result), failure: parse(failure) }) };
}

/** Its id is that of the sample, with the number of the retry: `e:0:1`, `e:0:1.1`, `e:0:1.2`. */
function toReplacement({ id: replaced, group_id: group, scenario, body }: UnscoredRow): StoredSubmission {
  const [first = replaced, retries = '0'] = replaced.slice(group.length).split('.');
  const id = `${group}${first}.${Number(retries) + 1}` as RolloutId;
  if (!idPattern.test(id)) throw new Error(`the sample ${replaced} cannot be retried: ${id} is no id`);
  const { task, ...rest } = JSON.parse(body);
  const stored = { body: JSON.stringify({ ...rest, id }), task: JSON.stringify(task) };
  return { id, digest: `sample of ${group}`, scenario, group, ...definedOf({ date: rest.date }), ...stored };
}

export async function cancelEvaluation(transaction: Transaction, id: EvaluationId): Promise<boolean> {
  const row = await lockEvaluation(transaction, id);
  if (row?.state !== 'open') return false;
  await transaction.run("UPDATE evaluations SET state = 'cancelled', ended_at = ? WHERE seq = ?", transaction.nowMs, row.seq);
  const live = 'SELECT id FROM evaluation_samples JOIN rollouts USING (seq) WHERE evaluation_seq = ? AND ended_at IS NULL';
  for (const sample of await transaction.all<{ id: RolloutId }>(live, row.seq))
    await cancel(transaction, { id: sample.id, tombstoneMs: 0 });
  await transaction.appendEvent({ kind: 'evaluation-end', data: { evaluation: id, state: 'cancelled', samples: row.ended } });
  return true;
}

/** The evaluations that have expired, oldest first. */
export async function expiredEvaluations(
  transaction: Transaction,
  ages: { readonly asOfMs: number; readonly endedMs: number },
): Promise<number[]> {
  const sql = 'SELECT seq FROM evaluations WHERE ended_at < ? ORDER BY ended_at LIMIT ?';
  return (await transaction.all<{ seq: number }>(sql, ages.asOfMs - ages.endedMs, rowsPerStep)).map(({ seq }) => seq);
}

/** Deletes one slice of an expired evaluation: its rollouts, its tasks, and at last the evaluation itself. */
export async function retainEvaluationSlice(transaction: Transaction, evaluationSeq: number): Promise<RetainedSlice> {
  const isSpent = openBudget();
  const owned = 'SELECT seq FROM evaluation_samples WHERE evaluation_seq = ? LIMIT ?';
  const old = await transaction.all<{ seq: number }>(owned, evaluationSeq, rowsPerStep);
  const rollouts = await deleteRollouts(transaction, old, isSpent);
  for (const { seq } of old.slice(0, rollouts)) await transaction.run('DELETE FROM evaluation_samples WHERE seq = ?', seq);
  if (rollouts < old.length || old.length === rowsPerStep) return { rollouts, more: true };
  for (const table of ['evaluation_tasks', 'evaluation_scores']) {
    const some = `SELECT task_index FROM ${table} WHERE evaluation_seq = ?1 LIMIT ?2`;
    const sql = `DELETE FROM ${table} WHERE evaluation_seq = ?1 AND task_index IN (${some})`;
    while ((await transaction.run(sql, evaluationSeq, rowsPerStep)) === rowsPerStep) if (isSpent()) return { rollouts, more: true };
  }
  const row = await transaction.one<{ id: string }>('SELECT id FROM evaluations WHERE seq = ?', evaluationSeq);
  if (row) await deleteClasses(transaction, 'evaluation', row.id);
  for (const table of ['evaluation_failures', 'evaluation_stops'])
    await transaction.run(`DELETE FROM ${table} WHERE evaluation_seq = ?`, evaluationSeq);
  await transaction.run('DELETE FROM evaluations WHERE seq = ?', evaluationSeq);
  return { rollouts, more: false };
}
