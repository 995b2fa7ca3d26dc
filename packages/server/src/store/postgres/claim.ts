// Claims in PostgreSQL: a few statements for any number of rollouts. Rows that another worker is taking are skipped, so workers that
// claim together never wait for each other and never take the same rollout.

import type { RolloutId } from '@millrace/protocol';
import { groupTaskColumn, toSubmission } from '../rows/operations/batch/group-task.ts';
import { type ClaimRequest, type QueuedRow, queuedColumns, toClaimed } from '../rows/operations/claims.ts';
import { appendMoved } from '../rows/operations/transitions.ts';
import type { ClaimedRollout } from '../store.ts';
import type { Transaction } from '../transaction.ts';
import { type DueClass, divideTurns } from './divide-turns.ts';

/** More classes than any claim has room for: the first of each rank matter. */
const mostClasses = 1_000;

export async function takeTogether(transaction: Transaction, { worker, limit }: ClaimRequest): Promise<ClaimedRollout[]> {
  const sql = 'SELECT seq, rank, weight, active, due, served FROM due_classes ORDER BY rank DESC, active / weight, served, seq LIMIT ?';
  let classes = await transaction.all<DueClass>(sql, mostClasses);
  const taken: QueuedRow[] = [];
  while (taken.length < limit && classes.length > 0) {
    const order = divideTurns(classes, limit - taken.length);
    const [found, empty] = [new Map<number, QueuedRow[]>(), new Set<number>()];
    for (const seq of new Set(order)) {
      const turns = order.filter((one) => one === seq).length;
      const rows = await lockDue(transaction, seq, turns);
      if (rows.length > 0) await transaction.noteServed(seq);
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

async function lockDue(transaction: Transaction, classSeq: number, limit: number): Promise<QueuedRow[]> {
  const sql = `SELECT ${queuedColumns} FROM rollouts WHERE state = 'queued' AND line = 'due' AND class = ?
    ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED`;
  return await transaction.all<QueuedRow>(sql, classSeq, limit);
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
    await appendMoved(transaction, row, { state: 'init', claim });
    const submission = submissions.get(row.id);
    if (!submission) throw new Error(`rollout ${row.id} has no submission`);
    claimed.push(toClaimed(claim, row, submission));
  }
  return claimed;
}
