// Delivery: the stream of delivered groups, each consumer's position, and the webhook outbox.

import type { BatchId, GroupId } from '@millrace/protocol';
import { definedOf, RolloutError } from '@millrace/protocol/plain';
import type { GroupRecord, WebhookDue, WebhookHold } from '../../batch-store.ts';
import { longestDelayMs } from '../../claim.ts';
import type { Transaction } from '../../transaction.ts';
import { readBatch, readPlan } from './batches.ts';
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

export async function deliveredGroups(
  transaction: Transaction,
  request: { readonly batch: BatchId; readonly after: number; readonly limit: number; readonly maxBytes?: number },
): Promise<GroupRecord[]> {
  const { batch, after, limit, maxBytes = Number.POSITIVE_INFINITY } = request;
  const owner = await readBatch(transaction, batch);
  if (!owner) return [];
  const { policy_failures, penalty } = readPlan(owner);
  const sql = "SELECT * FROM batch_groups WHERE batch_seq = ? AND state = 'delivered' AND place > ? ORDER BY place LIMIT ?";
  const rows = await transaction.all<PlaceRow>(sql, owner.seq, after, limit);
  const first = rows[0]?.place ?? owner.delivered + 1;
  if (first > after + 1 && limit > 0) throw goneGroups(batch, first);
  return await Array.fromAsync(await takeWithin(transaction, { rows, maxBytes }), async (row) => ({
    seq: row.place,
    id: row.id,
    batch,
    taskIndex: row.task_index,
    task: JSON.parse(row.task),
    rollouts: (
      await transaction.all<RecordRow>(
        `${records} JOIN siblings USING (seq) WHERE group_seq = ? AND place IS NOT NULL ORDER BY place`,
        row.seq,
      )
    ).map(toRecord),
    ...(policy_failures === 'penalise' && { penalty }),
    carried: row.carried === 1,
    deliveredAtMs: row.ended_at,
  }));
}

/** Places have no gaps, unless retention deleted the first groups. */
function goneGroups(batch: BatchId, first: number): RolloutError {
  const message = `the groups of batch ${batch} up to ${first - 1} are no longer kept (retention.deliveredHours)`;
  return new RolloutError('gone', message);
}

/** The first rows, and more while their trajectories fit. */
async function takeWithin(
  transaction: Transaction,
  { rows, maxBytes }: { rows: readonly PlaceRow[]; maxBytes: number },
): Promise<readonly PlaceRow[]> {
  if (maxBytes === Number.POSITIVE_INFINITY) return rows;
  const sql = `SELECT sum(coalesce(bytes, length(body))) AS bytes FROM siblings JOIN trajectories USING (seq) WHERE group_seq = ? AND place IS NOT NULL`;
  let total = 0;
  for (const [index, { seq }] of rows.entries()) {
    total += (await transaction.one<{ bytes: number | null }>(sql, seq))?.bytes ?? 0;
    if (total > maxBytes) return rows.slice(0, Math.max(1, index));
  }
  return rows;
}

export async function ack(
  transaction: Transaction,
  request: { readonly batch: BatchId; readonly consumer: string; readonly through: number },
): Promise<number | undefined> {
  const row = await readBatch(transaction, request.batch);
  if (!row) return undefined;
  const sql = `INSERT INTO consumers (batch_seq, name, through) VALUES (?, ?, ?)
    ON CONFLICT (batch_seq, name) DO UPDATE
    SET through = CASE WHEN consumers.through > excluded.through THEN consumers.through ELSE excluded.through END RETURNING through`;
  return (await transaction.one<{ through: number }>(sql, row.seq, request.consumer, Math.min(request.through, row.delivered)))?.through;
}

export async function acked(transaction: Transaction, request: { readonly batch: BatchId; readonly consumer: string }): Promise<number> {
  const sql = 'SELECT through FROM consumers WHERE batch_seq = (SELECT seq FROM batches WHERE id = ?) AND name = ?';
  return (await transaction.one<{ through: number }>(sql, request.batch, request.consumer))?.through ?? 0;
}

interface OutboxRow {
  readonly id: BatchId;
  readonly url: string;
  readonly secret: string | null;
  readonly sent: number;
  readonly attempts: number;
  readonly not_before: number;
}

export async function dueWebhooks(transaction: Transaction): Promise<{ due: WebhookDue[]; nextAtMs?: number }> {
  const sql =
    'SELECT id, url, secret, sent, attempts, not_before FROM outbox JOIN batches ON seq = batch_seq WHERE sent < delivered ORDER BY seq';
  const rows = await transaction.all<OutboxRow>(sql);
  const { nowMs } = transaction;
  // A pause that ends later than any pause can was set by a clock that was ahead.
  const isLater = ({ not_before }: OutboxRow) => not_before > nowMs && not_before <= nowMs + longestDelayMs;
  const later = rows.filter(isLater).map((row) => row.not_before);
  const due = rows
    .filter((row) => !isLater(row))
    .map(({ id, url, secret, sent, attempts }) => definedOf({ batch: id, url, secret: secret ?? undefined, seq: sent + 1, attempts }));
  return definedOf({ due, nextAtMs: later.length > 0 ? Math.min(...later) : undefined });
}

/** A hold postpones the delivery, so a server that dies leaves it due when the hold ends. */
export async function holdWebhook(transaction: Transaction, hold: WebhookHold): Promise<number | undefined> {
  const { batch, seq, leaseMs, heldUntilMs } = hold;
  const { nowMs } = transaction;
  const [isFree, values] =
    heldUntilMs === undefined
      ? ['(not_before <= ? OR not_before > ?)', [nowMs, nowMs + longestDelayMs]]
      : ['not_before = ?', [heldUntilMs]];
  const sql = `UPDATE outbox SET not_before = ? WHERE batch_seq = (SELECT seq FROM batches WHERE id = ?) AND sent = ? AND ${isFree}`;
  const held = await transaction.run(sql, nowMs + leaseMs, batch, seq - 1, ...values);
  return held === 0 ? undefined : nowMs + leaseMs;
}

export async function noteWebhook(
  transaction: Transaction,
  sent: { readonly batch: BatchId; readonly seq: number; readonly delayMs?: number },
): Promise<void> {
  const { batch, seq, delayMs } = sent;
  const where = 'WHERE batch_seq = (SELECT seq FROM batches WHERE id = ?) AND sent = ?';
  if (delayMs === undefined)
    await transaction.run(`UPDATE outbox SET sent = sent + 1, attempts = 0, not_before = 0 ${where}`, batch, seq - 1);
  else
    await transaction.run(
      `UPDATE outbox SET attempts = attempts + 1, not_before = ? ${where}`,
      transaction.nowMs + delayMs,
      batch,
      seq - 1,
    );
}
