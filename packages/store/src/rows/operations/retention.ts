// Deletes old rows in slices of a few milliseconds, so that no other write waits long. What has expired is found by the reader,
// which holds no lock.

import { systemClock } from '@millrace/base/clock';
import type { GroupState } from '@millrace/protocol';
import type { Transaction } from '../../transaction.ts';
import { deleteClasses } from './classes.ts';

/** How long one slice may hold the write lock. */
const sliceMs = 2;
export const rowsPerStep = 200;

/** A slice stops when this returns true. */
export function openBudget(): () => boolean {
  const endsAt = systemClock.monotonic() + sliceMs;
  return () => systemClock.monotonic() >= endsAt;
}

/** `more` is true when another slice may follow. */
export interface RetainedSlice {
  readonly rollouts: number;
  readonly more: boolean;
}

/** Deletes plain rollouts, events, tombstones and workers. */
export async function retainSlice(
  transaction: Transaction,
  ages: { readonly plainMs: number; readonly eventsMs: number; readonly asOfMs: number },
): Promise<RetainedSlice> {
  const { asOfMs, plainMs, eventsMs } = ages;
  const isSpent = openBudget();
  const sql = 'SELECT seq FROM rollouts WHERE ended_at < ? AND is_sibling = 0 ORDER BY ended_at LIMIT ?';
  const old = await transaction.all<{ seq: number }>(sql, asOfMs - plainMs, rowsPerStep);
  const rollouts = await deleteRollouts(transaction, old, isSpent);
  let events = await deleteEvents(transaction, asOfMs - eventsMs);
  while (events === rowsPerStep && !isSpent()) events = await deleteEvents(transaction, asOfMs - eventsMs);
  if (rollouts === old.length && old.length < rowsPerStep && events < rowsPerStep) {
    await transaction.run('DELETE FROM tombstones WHERE until <= ?', asOfMs);
    await transaction.run('DELETE FROM workers WHERE ended_at < ?', asOfMs - eventsMs);
    return { rollouts, more: false };
  }
  return { rollouts, more: true };
}

/** Deletes at least one, so that every slice makes progress. Returns how many. */
export async function deleteRollouts(
  transaction: Transaction,
  old: readonly { readonly seq: number }[],
  isSpent: () => boolean,
): Promise<number> {
  let deleted = 0;
  while (deleted < old.length && (deleted === 0 || !isSpent())) {
    const some = old.slice(deleted, deleted + transaction.rowsPerStatement).map(({ seq }) => seq);
    const places = some.map(() => '?').join(', ');
    for (const table of ['trajectories', 'loss_endings', 'turn_log', 'submissions', 'siblings', 'rollouts'])
      await transaction.run(`DELETE FROM ${table} WHERE seq IN (${places})`, ...some);
    deleted += some.length;
  }
  return deleted;
}

/** Reads only the first rows: the log is in time order, so old events come first. */
async function deleteEvents(transaction: Transaction, beforeMs: number): Promise<number> {
  const sql = 'SELECT max(id) AS id FROM (SELECT id, at FROM events ORDER BY id LIMIT ?) AS first WHERE at < ?';
  const last = (await transaction.one<{ id: number | null }>(sql, rowsPerStep, beforeMs))?.id ?? 0;
  return await transaction.run('DELETE FROM events WHERE id <= ?', last);
}

/** A batch that is not fully acknowledged, or not fully sent to its webhook, is kept this many times as long. */
const unacknowledgedFactor = 10;

/** Whether a row of `batches` was received by everyone who reads it, or is older than the second value. */
const isDone = `(ended_at < ? OR NOT EXISTS (SELECT 1 FROM consumers WHERE batch_seq = batches.seq AND through < delivered UNION ALL
    SELECT 1 FROM outbox WHERE batch_seq = batches.seq AND sent < delivered))`;

/** The batches that have expired, oldest first. */
export async function expiredBatches(
  transaction: Transaction,
  ages: { readonly asOfMs: number; readonly endedMs: number },
): Promise<number[]> {
  const { asOfMs, endedMs } = ages;
  const sql = `SELECT seq FROM batches WHERE ended_at < ? AND ${isDone} ORDER BY seq LIMIT ?`;
  const rows = await transaction.all<{ seq: number }>(sql, asOfMs - endedMs, asOfMs - endedMs * unacknowledgedFactor, rowsPerStep);
  return rows.map(({ seq }) => seq);
}

/**
 * Groups of this state in batches that ended so long ago, without those of which a rollout still runs, in the order of their batch and
 * place.
 */
export async function expiredGroups(
  transaction: Transaction,
  request: { readonly state: GroupState; readonly asOfMs: number; readonly ageMs: number },
): Promise<number[]> {
  const { state, asOfMs, ageMs } = request;
  const ended = state === 'delivered' ? isDone : 'ended_at < ?';
  const sql = `SELECT g.seq FROM batches JOIN batch_groups g ON g.batch_seq = batches.seq AND g.state = ? WHERE batches.ended_at < ?
    AND ${ended.replaceAll('ended_at', 'batches.ended_at')} AND NOT EXISTS
    (SELECT 1 FROM siblings JOIN rollouts USING (seq) WHERE group_seq = g.seq AND rollouts.ended_at IS NULL)
    ORDER BY batches.seq, g.place LIMIT ?`;
  const latestMs = asOfMs - ageMs * (state === 'delivered' ? unacknowledgedFactor : 1);
  return (await transaction.all<{ seq: number }>(sql, state, asOfMs - ageMs, latestMs, rowsPerStep)).map(({ seq }) => seq);
}

/** Deletes the rollouts of one group, and then the group. The counts of its batch stay. */
export async function retainGroupSlice(transaction: Transaction, groupSeq: number): Promise<RetainedSlice> {
  const old = await transaction.all<{ seq: number }>('SELECT seq FROM siblings WHERE group_seq = ? LIMIT ?', groupSeq, rowsPerStep);
  const rollouts = await deleteRollouts(transaction, old, openBudget());
  if (rollouts < old.length || old.length === rowsPerStep) return { rollouts, more: true };
  // The webhook of a batch that it never received is not called again.
  const unsent = "SELECT batch_seq FROM batch_groups WHERE seq = ? AND state = 'delivered'";
  await transaction.run(`DELETE FROM outbox WHERE batch_seq = (${unsent})`, groupSeq);
  await transaction.run('DELETE FROM batch_groups WHERE seq = ?', groupSeq);
  return { rollouts, more: false };
}

/** Deletes one slice of an expired batch: its rollouts, its tasks and groups, and at last the batch itself. */
export async function retainBatchSlice(transaction: Transaction, batchSeq: number): Promise<RetainedSlice> {
  const isSpent = openBudget();
  // A group that another batch takes over meanwhile stays.
  await transaction.all('SELECT seq FROM batch_groups WHERE batch_seq = ? ORDER BY seq FOR UPDATE', batchSeq);
  const owned = 'SELECT seq FROM siblings WHERE group_seq IN (SELECT seq FROM batch_groups WHERE batch_seq = ?) LIMIT ?';
  const old = await transaction.all<{ seq: number }>(owned, batchSeq, rowsPerStep);
  const rollouts = await deleteRollouts(transaction, old, isSpent);
  if (rollouts < old.length || old.length === rowsPerStep) return { rollouts, more: true };
  for (const [table, key] of [
    ['batch_tasks', 'n'],
    ['batch_groups', 'seq'],
  ] as const) {
    const some = `SELECT ${key} FROM ${table} WHERE batch_seq = ?1 LIMIT ?2`;
    const sql = `DELETE FROM ${table} WHERE batch_seq = ?1 AND ${key} IN (${some})`;
    while ((await transaction.run(sql, batchSeq, rowsPerStep)) === rowsPerStep) if (isSpent()) return { rollouts, more: true };
  }
  const row = await transaction.one<{ id: string }>('SELECT id FROM batches WHERE seq = ?', batchSeq);
  if (row) await deleteClasses(transaction, 'batch', row.id);
  for (const table of ['batch_appends', 'consumers', 'outbox', 'group_counts', 'batch_waste'])
    await transaction.run(`DELETE FROM ${table} WHERE batch_seq = ?`, batchSeq);
  await transaction.run('DELETE FROM batches WHERE seq = ?', batchSeq);
  return { rollouts, more: false };
}
