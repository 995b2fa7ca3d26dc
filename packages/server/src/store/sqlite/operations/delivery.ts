// Delivery: the stream of delivered groups, how far each consumer is, the outbox of webhooks, and the load that says whether
// there is room to sample more.

import type { BatchId, GroupId, WorkerReport } from '@millrace/protocol';
import type { DeliveredGroup, WebhookDue } from '../../batch-store.ts';
import type { Session } from '../engine/session.ts';
import { readBatch } from './batches.ts';
import { type RecordRow, records, toRecord } from './queries.ts';

interface PlaceRow {
  readonly seq: number;
  readonly id: GroupId;
  readonly place: number;
  readonly task_index: number;
  readonly task: string;
  readonly carried: number;
  readonly ended_at: number;
}

export function deliveredGroups(
  session: Session,
  request: { readonly batch: BatchId; readonly after: number; readonly limit: number },
): DeliveredGroup[] {
  const { batch, after, limit } = request;
  const sql = `SELECT * FROM batch_groups WHERE batch_seq = (SELECT seq FROM batches WHERE id = ?) AND state = 'delivered' AND place > ?
    ORDER BY place LIMIT ?`;
  return session.all<PlaceRow>(sql, batch, after, limit).map((row) => ({
    seq: row.place,
    id: row.id,
    batch,
    taskIndex: row.task_index,
    task: JSON.parse(row.task),
    rollouts: session
      .all<RecordRow>(`${records} JOIN siblings USING (seq) WHERE group_seq = ? AND place IS NOT NULL ORDER BY place`, row.seq)
      .map(toRecord),
    carried: row.carried === 1,
    deliveredAtMs: row.ended_at,
  }));
}

export function ack(
  session: Session,
  request: { readonly batch: BatchId; readonly consumer: string; readonly through: number },
): number | undefined {
  const row = readBatch(session, request.batch);
  if (!row) return undefined;
  const sql = `INSERT INTO consumers (batch_seq, name, through) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET through = max(through, excluded.through) RETURNING through`;
  return session.one<{ through: number }>(sql, row.seq, request.consumer, Math.min(request.through, row.delivered))?.through;
}

export function acked(session: Session, request: { readonly batch: BatchId; readonly consumer: string }): number {
  const sql = 'SELECT through FROM consumers WHERE batch_seq = (SELECT seq FROM batches WHERE id = ?) AND name = ?';
  return session.one<{ through: number }>(sql, request.batch, request.consumer)?.through ?? 0;
}

interface OutboxRow {
  readonly id: BatchId;
  readonly url: string;
  readonly secret: string | null;
  readonly sent: number;
  readonly attempts: number;
  readonly not_before: number;
}

export function dueWebhooks(session: Session): { due: WebhookDue[]; nextAtMs?: number } {
  const sql =
    'SELECT id, url, secret, sent, attempts, not_before FROM outbox JOIN batches ON seq = batch_seq WHERE sent < delivered ORDER BY seq';
  const rows = session.all<OutboxRow>(sql);
  const later = rows.filter((row) => row.not_before > session.nowMs).map((row) => row.not_before);
  const due = rows
    .filter((row) => row.not_before <= session.nowMs)
    .map(({ id, url, secret, sent, attempts }) => ({ batch: id, url, ...(secret === null ? {} : { secret }), seq: sent + 1, attempts }));
  return { due, ...(later.length > 0 ? { nextAtMs: Math.min(...later) } : {}) };
}

export function noteWebhook(session: Session, sent: { readonly batch: BatchId; readonly seq: number; readonly delayMs?: number }): void {
  const { batch, seq, delayMs } = sent;
  const where = 'WHERE batch_seq = (SELECT seq FROM batches WHERE id = ?) AND sent = ?';
  if (delayMs === undefined) session.run(`UPDATE outbox SET sent = sent + 1, attempts = 0, not_before = 0 ${where}`, batch, seq - 1);
  else session.run(`UPDATE outbox SET attempts = attempts + 1, not_before = ? ${where}`, session.nowMs + delayMs, batch, seq - 1);
}

export function load(session: Session): { queued: number; active: number; slots: number } {
  const count = (state: string) => session.one<{ n: number }>('SELECT count(*) AS n FROM rollouts WHERE state = ?', state)?.n ?? 0;
  const sql = 'SELECT report FROM workers WHERE ended_at IS NULL AND lease_until > ? AND report IS NOT NULL';
  const reports = session.all<{ report: string }>(sql, session.nowMs).map(({ report }): WorkerReport => JSON.parse(report));
  return {
    queued: count('queued'),
    active: count('init') + count('ready') + count('run'),
    slots: reports.reduce((total, { stages }) => total + stages.run.slots, 0),
  };
}
