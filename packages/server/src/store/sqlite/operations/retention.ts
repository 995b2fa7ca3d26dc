// Forgetting what is old, a slice at a time, so that no transition waits long behind it.

import type { Session } from '../engine/session.ts';

const rolloutsPerSlice = 100;
const eventsPerSlice = 5_000;

/** `more` says that another slice may be there. */
export function retainSlice(
  session: Session,
  ages: { readonly endedMs: number; readonly eventsMs: number },
): { rollouts: number; more: boolean } {
  const rollouts = forgetRollouts(session, session.nowMs - ages.endedMs);
  const batches = forgetBatch(session, ages.endedMs);
  const events = forgetEvents(session, session.nowMs - ages.eventsMs);
  session.run('DELETE FROM tombstones WHERE until <= ?', session.nowMs);
  session.run('DELETE FROM workers WHERE ended_at < ?', session.nowMs - ages.eventsMs);
  return { rollouts: rollouts + batches.rollouts, more: batches.more || rollouts === rolloutsPerSlice || events === eventsPerSlice };
}

function forgetRollouts(session: Session, beforeMs: number): number {
  const sql = `SELECT seq FROM rollouts WHERE ended_at < ? AND NOT EXISTS (SELECT 1 FROM siblings WHERE siblings.seq = rollouts.seq)
    ORDER BY ended_at LIMIT ?`;
  const old = session.all<{ seq: number }>(sql, beforeMs, rolloutsPerSlice);
  for (const { seq } of old) forgetRollout(session, seq);
  return old.length;
}

function forgetRollout(session: Session, seq: number): void {
  session.run('DELETE FROM trajectories WHERE seq = ?', seq);
  session.run('DELETE FROM submissions WHERE seq = ?', seq);
  session.run('DELETE FROM rollouts WHERE seq = ?', seq);
}

/** A consumer that never acknowledges the rest holds a batch ten times as long. */
const unacknowledgedFactor = 10;

/** One slice of the oldest batch that may go, and the batch itself with its last slice. */
function forgetBatch(session: Session, endedMs: number): { rollouts: number; more: boolean } {
  const sql = `SELECT seq FROM batches WHERE ended_at < ? AND (ended_at < ? OR NOT EXISTS
    (SELECT 1 FROM consumers WHERE batch_seq = batches.seq AND through < delivered)) ORDER BY seq LIMIT 1`;
  const { nowMs } = session;
  const batch = session.one<{ seq: number }>(sql, nowMs - endedMs, nowMs - endedMs * unacknowledgedFactor);
  if (!batch) return { rollouts: 0, more: false };
  const owned = 'SELECT seq FROM batch_groups WHERE batch_seq = ?';
  const old = session.all<{ seq: number }>(`SELECT seq FROM siblings WHERE group_seq IN (${owned}) LIMIT ?`, batch.seq, rolloutsPerSlice);
  for (const { seq } of old) {
    forgetRollout(session, seq);
    session.run('DELETE FROM siblings WHERE seq = ?', seq);
  }
  if (old.length < rolloutsPerSlice) {
    for (const table of ['batch_groups', 'batch_tasks', 'batch_appends', 'consumers', 'outbox'])
      session.run(`DELETE FROM ${table} WHERE batch_seq = ?`, batch.seq);
    session.run('DELETE FROM batches WHERE seq = ?', batch.seq);
  }
  return { rollouts: old.length, more: true };
}

/** Only the oldest slice is looked at: the log is in the order of time, so what is old stands in front. */
function forgetEvents(session: Session, beforeMs: number): number {
  const sql = 'SELECT max(id) AS id FROM (SELECT id, at FROM events ORDER BY id LIMIT ?) WHERE at < ?';
  const last = session.one<{ id: number | null }>(sql, eventsPerSlice, beforeMs)?.id ?? 0;
  return session.run('DELETE FROM events WHERE id <= ?', last);
}
