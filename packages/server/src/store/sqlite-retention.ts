// Forgetting what is old, a slice at a time, so that no transition waits long behind it.

import type { Session } from './sqlite-session.ts';

const rolloutsPerSlice = 100;
const eventsPerSlice = 5_000;

/** `more` says that another slice may be there. */
export function retainSlice(
  session: Session,
  ages: { readonly endedMs: number; readonly eventsMs: number },
): { rollouts: number; more: boolean } {
  const rollouts = forgetRollouts(session, session.nowMs - ages.endedMs);
  const events = forgetEvents(session, session.nowMs - ages.eventsMs);
  session.run('DELETE FROM tombstones WHERE until <= ?', session.nowMs);
  session.run('DELETE FROM workers WHERE ended_at < ?', session.nowMs - ages.eventsMs);
  return { rollouts, more: rollouts === rolloutsPerSlice || events === eventsPerSlice };
}

function forgetRollouts(session: Session, beforeMs: number): number {
  const sql = 'SELECT seq FROM rollouts WHERE ended_at < ? ORDER BY ended_at LIMIT ?';
  const old = session.all<{ seq: number }>(sql, beforeMs, rolloutsPerSlice);
  for (const { seq } of old) {
    session.run('DELETE FROM trajectories WHERE seq = ?', seq);
    session.run('DELETE FROM submissions WHERE seq = ?', seq);
    session.run('DELETE FROM rollouts WHERE seq = ?', seq);
  }
  return old.length;
}

/** Only the oldest slice is looked at: the log is in the order of time, so what is old stands in front. */
function forgetEvents(session: Session, beforeMs: number): number {
  const sql = 'SELECT max(id) AS id FROM (SELECT id, at FROM events ORDER BY id LIMIT ?) WHERE at < ?';
  const last = session.one<{ id: number | null }>(sql, eventsPerSlice, beforeMs)?.id ?? 0;
  return session.run('DELETE FROM events WHERE id <= ?', last);
}
