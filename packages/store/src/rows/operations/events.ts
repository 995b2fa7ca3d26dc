// Reading the event log. Each engine assigns ids in its own way, in the order of commits across all processes.

import type { Event, EventKind } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import type { NewEvent } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';

export async function appendEvents(transaction: Transaction, events: readonly NewEvent[]): Promise<void> {
  for (const event of events) await transaction.appendEvent(event);
}

interface EventQuery {
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

export async function events(transaction: Transaction, query: EventQuery): Promise<{ events: Event[]; last: number }> {
  const { after, limit, kinds } = query;
  const ofKinds = kinds === undefined ? '' : `AND kind IN (${kinds.map(() => '?').join(', ')})`;
  const sql = `SELECT * FROM events WHERE id > ? ${ofKinds} ORDER BY id LIMIT ?`;
  const rows = await transaction.all<EventRow>(sql, after, ...(kinds ?? []), limit);
  const last = rows.length < limit ? Math.max(after, await lastEventId(transaction)) : (rows.at(-1)?.id ?? after);
  return { events: rows.map(toEvent), last };
}

export function lastEventId(transaction: Transaction): Promise<number> {
  return transaction.lastEventId();
}

export async function oldestEventId(transaction: Transaction): Promise<number> {
  return (await transaction.one<{ id: number | null }>('SELECT min(id) AS id FROM events'))?.id ?? (await lastEventId(transaction)) + 1;
}

/** Absent for a log without events. */
export async function lastEventAtMs(transaction: Transaction): Promise<number | undefined> {
  return (await transaction.one<{ at: number }>('SELECT at FROM events ORDER BY id DESC LIMIT 1'))?.at;
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
