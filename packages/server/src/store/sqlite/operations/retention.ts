// Deletes old rows in small slices, so that no transition waits long for it.

import type { Transaction } from '../engine/connection.ts';

const rolloutsPerSlice = 100;
const eventsPerSlice = 5_000;

/** `more` is true when another slice may follow. */
export function retainSlice(
  transaction: Transaction,
  ages: { readonly endedMs: number; readonly eventsMs: number; readonly asOfMs: number },
): { rollouts: number; more: boolean } {
  const { asOfMs, endedMs, eventsMs } = ages;
  const rollouts = deleteRollouts(transaction, asOfMs - endedMs);
  const batches = deleteBatch(transaction, ages);
  const events = deleteEvents(transaction, asOfMs - eventsMs);
  transaction.run('DELETE FROM tombstones WHERE until <= ?', asOfMs);
  transaction.run('DELETE FROM workers WHERE ended_at < ?', asOfMs - eventsMs);
  return { rollouts: rollouts + batches.rollouts, more: batches.more || rollouts === rolloutsPerSlice || events === eventsPerSlice };
}

function deleteRollouts(transaction: Transaction, beforeMs: number): number {
  const sql = `SELECT seq FROM rollouts WHERE ended_at < ? AND NOT EXISTS (SELECT 1 FROM siblings WHERE siblings.seq = rollouts.seq)
    ORDER BY ended_at LIMIT ?`;
  const old = transaction.all<{ seq: number }>(sql, beforeMs, rolloutsPerSlice);
  for (const { seq } of old) deleteRollout(transaction, seq);
  return old.length;
}

function deleteRollout(transaction: Transaction, seq: number): void {
  transaction.run('DELETE FROM trajectories WHERE seq = ?', seq);
  transaction.run('DELETE FROM submissions WHERE seq = ?', seq);
  transaction.run('DELETE FROM rollouts WHERE seq = ?', seq);
}

/** A batch that is not fully acknowledged, or not fully sent to its webhook, is kept this many times as long. */
const unacknowledgedFactor = 10;

/** Deletes one slice of the oldest expired batch, and the batch itself with its last slice. */
function deleteBatch(
  transaction: Transaction,
  { asOfMs, endedMs }: { readonly asOfMs: number; readonly endedMs: number },
): { rollouts: number; more: boolean } {
  const sql = `SELECT seq FROM batches WHERE ended_at < ? AND (ended_at < ? OR NOT EXISTS
    (SELECT 1 FROM consumers WHERE batch_seq = batches.seq AND through < delivered UNION ALL
    SELECT 1 FROM outbox WHERE batch_seq = batches.seq AND sent < delivered)) ORDER BY seq LIMIT 1`;
  const batch = transaction.one<{ seq: number }>(sql, asOfMs - endedMs, asOfMs - endedMs * unacknowledgedFactor);
  if (!batch) return { rollouts: 0, more: false };
  const owned = 'SELECT seq FROM batch_groups WHERE batch_seq = ?';
  const old = transaction.all<{ seq: number }>(
    `SELECT seq FROM siblings WHERE group_seq IN (${owned}) LIMIT ?`,
    batch.seq,
    rolloutsPerSlice,
  );
  for (const { seq } of old) {
    deleteRollout(transaction, seq);
    transaction.run('DELETE FROM siblings WHERE seq = ?', seq);
  }
  if (old.length < rolloutsPerSlice) {
    for (const table of ['batch_groups', 'batch_tasks', 'batch_appends', 'consumers', 'outbox'])
      transaction.run(`DELETE FROM ${table} WHERE batch_seq = ?`, batch.seq);
    transaction.run('DELETE FROM batches WHERE seq = ?', batch.seq);
  }
  return { rollouts: old.length, more: true };
}

/** Reads only the first slice: the log is in time order, so old events come first. */
function deleteEvents(transaction: Transaction, beforeMs: number): number {
  const sql = 'SELECT max(id) AS id FROM (SELECT id, at FROM events ORDER BY id LIMIT ?) WHERE at < ?';
  const last = transaction.one<{ id: number | null }>(sql, eventsPerSlice, beforeMs)?.id ?? 0;
  return transaction.run('DELETE FROM events WHERE id <= ?', last);
}
