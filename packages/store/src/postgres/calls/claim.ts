// Claims in PostgreSQL: a few statements for any number of rollouts. Rows that another worker is taking are skipped, so workers that
// claim together never wait for each other and never take the same rollout. With several machines, siblings go where siblings run.

import type { RolloutId } from '@millrace/protocol';
import { longestPassMs } from '../../claim.ts';
import { groupTaskColumn, toSubmission } from '../../rows/operations/batch/group-task.ts';
import {
  type ClaimEngine,
  type ClaimRequest,
  type DueRequest,
  type QueuedRow,
  queuedColumns,
  toClaimed,
} from '../../rows/operations/claims.ts';
import { appendMoved, toMove } from '../../rows/operations/transitions.ts';
import type { ClaimedRollout } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import { fromStoredName, hasLabels } from '../../work-class.ts';
import { type DueClass, divideTurns } from './divide-turns.ts';

/** More classes than any claim has room for: the first of each rank matter. */
export const mostClasses = 1_000;

/** The host of the worker, if there are workers on others too. */
const preferringHost = `, CASE WHEN EXISTS (SELECT 1 FROM workers other WHERE other.host <> workers.host AND other.ended_at IS NULL)
  THEN host END AS preferring_host`;

export const dueClassesSql = `SELECT seq, name, rank, weight, active, due, served FROM claimable_classes
  ORDER BY rank DESC, active / weight, served, seq LIMIT ?`;

export const postgresClaims: ClaimEngine = { takeDue: takeTogether, workerColumns: preferringHost };

async function takeTogether(transaction: Transaction, request: DueRequest): Promise<ClaimedRollout[]> {
  const { worker, limit, labels, workerRow } = request;
  const host = typeof workerRow.preferring_host === 'string' ? workerRow.preferring_host : undefined;
  const due = await transaction.all<DueClass & { readonly name: string }>(dueClassesSql, mostClasses);
  let classes: readonly DueClass[] = due.filter(({ name }) => hasLabels(labels, fromStoredName(name).requires));
  const taken: QueuedRow[] = [];
  while (taken.length < limit && classes.length > 0) {
    const order = divideTurns(classes, limit - taken.length);
    const [found, empty] = [new Map<number, QueuedRow[]>(), new Set<number>()];
    for (const seq of new Set(order)) {
      const turns = order.filter((one) => one === seq).length;
      const rows = await lockPreferred(transaction, { host, class: seq, limit: turns });
      // The others are being taken by another worker.
      if (rows.length < turns) empty.add(seq);
      found.set(seq, rows);
    }
    taken.push(...order.flatMap((seq) => found.get(seq)?.shift() ?? []));
    if (empty.size === 0) break;
    classes = classes.filter(({ seq }) => !empty.has(seq));
  }
  return await takeAll(transaction, taken, worker);
}

interface LockRequest {
  readonly class: number;
  readonly limit: number;
  readonly host?: string | undefined;
}

const isDue = "state = 'queued' AND line = 'due' AND class = ?1";

/** The oldest first, except those that are locked here. */
async function lockDue(
  transaction: Transaction,
  { class: own, limit }: LockRequest,
  locked: readonly QueuedRow[] = [],
): Promise<QueuedRow[]> {
  const [except, values] = locked.length === 0 ? ['', []] : [`AND ${isOther('?3')}`, [toList(locked)]];
  const sql = `SELECT ${queuedColumns} FROM rollouts WHERE ${isDue} ${except} ORDER BY seq LIMIT ?2 FOR UPDATE SKIP LOCKED`;
  return await transaction.all<QueuedRow>(sql, own, limit, ...values);
}

/** One value for any number of rows, so that the statement is prepared once. */
function toList(rows: readonly QueuedRow[]): string {
  return rows.map(({ seq }) => seq).join(',');
}

function isOther(list: string): string {
  return `seq <> ALL (string_to_array(${list}, ',')::bigint[])`;
}

/** How many rollouts at the head of a class may overtake each other. */
const windowSize = 64;

interface WindowRow extends QueuedRow {
  /** Its position in the window, from 1. */
  readonly n: number;
}

// Places: 0 was passed over for long, 1 has siblings here, 2 has siblings nowhere, 3 elsewhere. Rows are read by their keys, one after the
// other, and locked until there are enough: whatever the planner knows of the tables, a claim reads the rows of its window and no others.
const preferred = `WITH head AS MATERIALIZED (
SELECT seq, group_id, passed_at, row_number() OVER (ORDER BY seq) AS n FROM rollouts WHERE ${isDue} ORDER BY seq LIMIT ?2
), homes AS MATERIALIZED (SELECT g.group_id, here FROM (SELECT DISTINCT group_id FROM head WHERE group_id IS NOT NULL) g, LATERAL (
SELECT bool_or(host = ?3) AS here FROM rollouts held JOIN workers w ON w.id = held.worker WHERE held.group_id = g.group_id) one
), ranked AS MATERIALIZED (
SELECT seq, n FROM head LEFT JOIN homes USING (group_id)
ORDER BY CASE WHEN passed_at <= ?4 THEN 0 WHEN here THEN 1 WHEN here IS NULL THEN 2 ELSE 3 END, seq)
SELECT taken.*, n FROM ranked, LATERAL (
SELECT ${queuedColumns} FROM rollouts WHERE ${isDue} AND rollouts.seq = ranked.seq FOR UPDATE SKIP LOCKED) AS taken LIMIT ?5`;

/** First those that were passed over for long, then those whose siblings run here, then those whose siblings run nowhere. */
async function lockPreferred(transaction: Transaction, request: LockRequest): Promise<QueuedRow[]> {
  const { host, limit, class: own } = request;
  if (host === undefined) return await lockDue(transaction, request);
  const passedAt = transaction.nowMs - longestPassMs;
  const rows = await transaction.all<WindowRow>(preferred, own, windowSize + limit, host, passedAt, limit);
  if (rows.some(({ n }) => n > rows.length)) await notePassed(transaction, own, rows);
  if (rows.length === limit) return rows;
  // Other workers are taking what is in the window.
  return [...rows, ...(await lockDue(transaction, { class: own, limit: limit - rows.length }, rows))];
}

/** Those that were overtaken remember since when. */
async function notePassed(transaction: Transaction, own: number, rows: readonly QueuedRow[]): Promise<void> {
  const sql = `UPDATE rollouts SET passed_at = ?2 WHERE seq IN (SELECT seq FROM rollouts WHERE ${isDue} AND passed_at IS NULL
    AND seq < ?3 AND ${isOther('?5')} ORDER BY seq LIMIT ?4 FOR UPDATE SKIP LOCKED)`;
  await transaction.run(sql, own, transaction.nowMs, Math.max(...rows.map(({ seq }) => seq)), windowSize, toList(rows));
}

async function takeAll(transaction: Transaction, rows: readonly QueuedRow[], worker: ClaimRequest['worker']): Promise<ClaimedRollout[]> {
  if (rows.length === 0) return [];
  const [seqs, places] = [rows.map(({ seq }) => seq), rows.map(() => '?').join(', ')];
  await transaction.run(`UPDATE rollouts SET state = 'init', worker = ?, attempt = attempt + 1 WHERE seq IN (${places})`, worker, ...seqs);
  const sql = `SELECT rollouts.id, body, ${groupTaskColumn} FROM submissions JOIN rollouts USING (seq) WHERE seq IN (${places})`;
  const bodies = await transaction.all<{ id: RolloutId; body: string; group_task: string | null }>(sql, ...seqs);
  const submissions = new Map(bodies.map((row) => [row.id, toSubmission(row)]));
  const claimed: ClaimedRollout[] = [];
  for (const row of rows) {
    const claim = { id: row.id, worker, attempt: row.attempt + 1 };
    await transaction.noteMove(toMove(row, 'init'));
    await appendMoved(transaction, row, { state: 'init', claim });
    const submission = submissions.get(row.id);
    if (!submission) throw new Error(`rollout ${row.id} has no submission`);
    claimed.push(toClaimed(claim, row, submission));
  }
  return claimed;
}
