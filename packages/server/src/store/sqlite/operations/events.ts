// The event log in SQLite. Ids are assigned inside the write transaction, and SQLite allows one at a time, so their order is the
// commit order across all processes.

import { definedOf, type Event, type EventKind } from '@millrace/protocol';
import type { NewEvent } from '../../store.ts';
import type { Transaction } from '../engine/connection.ts';

export function appendEvent(transaction: Transaction, event: NewEvent): void {
  transaction.run(
    'INSERT INTO events (at, kind, rollout_id, group_id, worker_id, backend_id, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
    transaction.nowMs,
    event.kind,
    event.rolloutId ?? null,
    event.group ?? null,
    event.workerId ?? null,
    event.backendId ?? null,
    JSON.stringify(event.data),
  );
}

export function appendEvents(transaction: Transaction, events: readonly NewEvent[]): void {
  for (const event of events) appendEvent(transaction, event);
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

export function events(transaction: Transaction, query: EventQuery): { events: Event[]; last: number } {
  const { after, limit, kinds } = query;
  const ofKinds = kinds === undefined ? '' : `AND kind IN (${kinds.map(() => '?').join(', ')})`;
  const sql = `SELECT * FROM events WHERE id > ? ${ofKinds} ORDER BY id LIMIT ?`;
  const rows = transaction.all<EventRow>(sql, after, ...(kinds ?? []), limit);
  const last = rows.length < limit ? Math.max(after, lastEventId(transaction)) : (rows.at(-1)?.id ?? after);
  return { events: rows.map(toEvent), last };
}

/** Read from the sequence, not from the rows: retention may have deleted the newest event. */
export function lastEventId(transaction: Transaction): number {
  return transaction.one<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'events'")?.seq ?? 0;
}

export function oldestEventId(transaction: Transaction): number {
  return transaction.one<{ id: number | null }>('SELECT min(id) AS id FROM events')?.id ?? lastEventId(transaction) + 1;
}

/** Absent for a log without events. */
export function lastEventAtMs(transaction: Transaction): number | undefined {
  return transaction.one<{ at: number }>('SELECT at FROM events ORDER BY id DESC LIMIT 1')?.at;
}

function toEvent(row: EventRow): Event {
  return {
    id: row.id,
    at: new Date(row.at).toISOString(),
    kind: row.kind,
    ...definedOf({
      rollout_id: row.rollout_id ?? undefined,
      group: row.group_id ?? undefined,
      worker_id: row.worker_id ?? undefined,
      backend_id: row.backend_id ?? undefined,
    }),
    data: JSON.parse(row.data),
  };
}
