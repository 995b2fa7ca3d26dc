// The event log in SQLite. Ids are given inside the one write transaction that the file allows at a time, so their order is
// the order of commits over all processes.

import type { Event, EventKind } from '@millrace/protocol';
import type { NewEvent } from '../../store.ts';
import type { Session } from '../engine/session.ts';

export function appendEvent(session: Session, event: NewEvent): void {
  session.run(
    'INSERT INTO events (at, kind, rollout_id, group_id, worker_id, backend_id, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
    session.nowMs,
    event.kind,
    event.rolloutId ?? null,
    event.group ?? null,
    event.workerId ?? null,
    event.backendId ?? null,
    JSON.stringify(event.data),
  );
}

export function appendEvents(session: Session, events: readonly NewEvent[]): void {
  for (const event of events) appendEvent(session, event);
}

export interface EventQuery {
  readonly after: number;
  readonly limit: number;
  readonly kinds?: readonly EventKind[];
}

interface EventRow {
  readonly id: number;
  readonly at: number;
  readonly kind: EventKind;
  readonly rollout_id: Event['rollout_id'] | null;
  readonly group_id: Event['group'] | null;
  readonly worker_id: Event['worker_id'] | null;
  readonly backend_id: Event['backend_id'] | null;
  readonly data: string;
}

export function events(session: Session, query: EventQuery): { events: Event[]; last: number } {
  const { after, limit, kinds } = query;
  const ofKinds = kinds === undefined ? '' : `AND kind IN (${kinds.map(() => '?').join(', ')})`;
  const sql = `SELECT * FROM events WHERE id > ? ${ofKinds} ORDER BY id LIMIT ?`;
  const rows = session.all<EventRow>(sql, after, ...(kinds ?? []), limit);
  const last = rows.length < limit ? Math.max(after, lastEventId(session)) : (rows.at(-1)?.id ?? after);
  return { events: rows.map(toEvent), last };
}

/** Read from the sequence, not from the rows: retention may have taken the newest event. */
export function lastEventId(session: Session): number {
  return session.one<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'events'")?.seq ?? 0;
}

function toEvent(row: EventRow): Event {
  return {
    id: row.id,
    at: new Date(row.at).toISOString(),
    kind: row.kind,
    ...(row.rollout_id ? { rollout_id: row.rollout_id } : {}),
    ...(row.group_id ? { group: row.group_id } : {}),
    ...(row.worker_id ? { worker_id: row.worker_id } : {}),
    ...(row.backend_id ? { backend_id: row.backend_id } : {}),
    data: JSON.parse(row.data),
  };
}
