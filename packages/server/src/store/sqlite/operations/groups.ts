// Groups of siblings: starting, carrying over, completing and settling them. Each function is one guarded change in the caller's
// transaction, so a group starts once, is delivered once, and never after its batch has ended.

import { type BatchId, definedOf, type GroupId, type RolloutId } from '@millrace/protocol';
import { type NewGroup, type Settlement, stormGroups } from '../../batch-store.ts';
import { rankOf } from '../../work-class.ts';
import type { Transaction } from '../engine/connection.ts';
import { moveWaste } from './batch/waste.ts';
import { type BatchRow, closeBatch, countRewards, readBatch, readPlan, stopSiblings } from './batches.ts';
import { openClass } from './classes.ts';
import { appendEvent } from './events.ts';
import { insertRollout, type StoredSubmission } from './submit.ts';

interface GroupRow {
  readonly seq: number;
  readonly id: GroupId;
  readonly batch_seq: number;
  readonly state: string;
  readonly task_index: number;
  readonly task: string;
  /** How many times its task was sampled again because a group was stale. */
  readonly repeats: number;
}

export type StoredGroup = Omit<NewGroup, 'rollouts'> & { readonly rollouts: readonly StoredSubmission[] };

export function beginGroup(transaction: Transaction, group: StoredGroup): boolean {
  const batch = readBatch(transaction, group.batch);
  if (batch?.state !== 'open' || batch.begun !== group.begun) return false;
  const taken = takeTask(transaction, batch, group.from);
  if (taken === undefined) return false;
  const { task_index: taskIndex, repeats } = taken;
  // If a caller already used these ids for its own rollouts, one task is lost, not the batch.
  const state = group.rollouts.some(({ id }) => isUsed(transaction, id)) ? 'failed' : 'open';
  const sql = `INSERT INTO batch_groups (id, batch_seq, state, task_index, task, repeats, created_at, ended_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`;
  const endedAt = state === 'open' ? null : transaction.nowMs;
  const task = JSON.stringify(group.task);
  const row = transaction.one<{ seq: number }>(sql, group.id, batch.seq, state, taskIndex, task, repeats, transaction.nowMs, endedAt);
  transaction.run('UPDATE batches SET begun = begun + 1 WHERE seq = ?', batch.seq);
  if (state === 'open') addSiblings(transaction, { seq: row?.seq ?? 0, batch, isUrgent: isLast(batch), task }, group.rollouts);
  const data = { batch: batch.id, task_index: taskIndex, siblings: group.rollouts.length };
  appendEvent(transaction, { kind: 'group-begin', group: group.id, data });
  if (state === 'failed')
    appendEvent(transaction, { kind: 'group-end', group: group.id, data: { batch: batch.id, state, reason: 'id in use' } });
  return true;
}

type TakenTask = Pick<GroupRow, 'task_index' | 'repeats'>;

/** The task's index in the stream; absent when the task was already taken. */
function takeTask(transaction: Transaction, batch: BatchRow, from: NewGroup['from']): TakenTask | undefined {
  if (from.kind === 'queue') {
    const queued = 'SELECT task_index, repeats FROM batch_tasks WHERE batch_seq = ? AND n = ?';
    const next = transaction.one<TakenTask>(queued, batch.seq, batch.taken);
    if (next) transaction.run('UPDATE batches SET taken = taken + 1 WHERE seq = ?', batch.seq);
    return next;
  }
  if (cursor(transaction, from.name) !== from.at) return undefined;
  const sql = 'INSERT INTO task_cursors (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = excluded.position';
  transaction.run(sql, from.name, from.to);
  return { task_index: from.to - 1, repeats: 0 };
}

function addSiblings(
  transaction: Transaction,
  group: { readonly seq: number; readonly batch: BatchRow; readonly isUrgent: boolean; readonly task: string },
  rollouts: readonly StoredSubmission[],
): void {
  const { seq: groupSeq, batch, isUrgent, task: groupTask } = group;
  const own = openBatchClass(transaction, batch, isUrgent);
  for (const rollout of rollouts) {
    const seq = insertRollout(transaction, { ...rollout, state: 'queued', class: own, isSibling: true, groupTask });
    transaction.run('INSERT INTO siblings (seq, group_seq, batch_seq) VALUES (?, ?, ?)', seq, groupSeq, batch.seq);
  }
}

function isUsed(transaction: Transaction, id: RolloutId): boolean {
  return transaction.one('SELECT seq FROM rollouts WHERE id = ?', id) !== undefined;
}

function readGroup(transaction: Transaction, id: GroupId): GroupRow | undefined {
  return transaction.one<GroupRow>('SELECT * FROM batch_groups WHERE id = ?', id);
}

interface GroupTransfer {
  readonly batch: BatchId;
  readonly group: GroupId;
  readonly rollouts: readonly StoredSubmission[];
}

export function takeGroup(transaction: Transaction, { batch: batchId, group: groupId, rollouts }: GroupTransfer): boolean {
  const [batch, group] = [readBatch(transaction, batchId), readGroup(transaction, groupId)];
  if (batch?.state !== 'open' || group?.state !== 'surplus' || rollouts.some(({ id }) => isUsed(transaction, id))) return false;
  const sql = "UPDATE batch_groups SET state = 'open', batch_seq = ?, carried = 1, ended_at = NULL WHERE seq = ?";
  moveWaste(transaction, group.seq, () => transaction.run(sql, batch.seq, group.seq));
  transaction.run('UPDATE batches SET carried = carried + 1 WHERE seq = ?', batch.seq);
  const own = openBatchClass(transaction, batch, isLast(batch));
  const live = 'SELECT seq FROM siblings JOIN rollouts USING (seq) WHERE group_seq = ? AND ended_at IS NULL';
  transaction.run(`UPDATE rollouts SET class = ? WHERE seq IN (${live})`, own, group.seq);
  addSiblings(transaction, { seq: group.seq, batch, isUrgent: isLast(batch), task: group.task }, rollouts);
  const data = { batch: batch.id, task_index: group.task_index, siblings: rollouts.length, carried: true };
  appendEvent(transaction, { kind: 'group-begin', group: group.id, data });
  return true;
}

export function renewGroup(transaction: Transaction, request: { readonly batch: BatchId; readonly group: GroupId }): boolean {
  const [batch, group] = [readBatch(transaction, request.batch), readGroup(transaction, request.group)];
  if (batch?.state !== 'open' || group?.state !== 'surplus') return false;
  stopSiblings(transaction, group.seq);
  const sql = "UPDATE batch_groups SET state = 'stale', ended_at = ? WHERE seq = ?";
  moveWaste(transaction, group.seq, () => transaction.run(sql, transaction.nowMs, group.seq));
  repeatStale(transaction, batch, group);
  appendEvent(transaction, { kind: 'group-end', group: group.id, data: { batch: batch.id, state: 'stale' } });
  return true;
}

/** A task whose groups were stale this many times is dropped: its weights change faster than it can be sampled. */
const mostRepeats = 8;

function repeatStale(transaction: Transaction, batch: BatchRow, group: GroupRow): void {
  if (group.repeats < mostRepeats) requeue(transaction, batch, { ...group, repeats: group.repeats + 1 });
}

function requeue(transaction: Transaction, batch: BatchRow, group: GroupRow): void {
  const sql = 'INSERT INTO batch_tasks (batch_seq, n, task_index, body, repeats) SELECT seq, line, ?, ?, ? FROM batches WHERE seq = ?';
  transaction.run(sql, group.task_index, group.task, group.repeats, batch.seq);
  transaction.run('UPDATE batches SET line = line + 1 WHERE seq = ?', batch.seq);
}

export function replaceSiblings(
  transaction: Transaction,
  request: { readonly group: GroupId; readonly rollouts: readonly StoredSubmission[] },
): boolean {
  const group = readGroup(transaction, request.group);
  if (group?.state !== 'open') return false;
  const batch = transaction.one<BatchRow>('SELECT * FROM batches WHERE seq = ?', group.batch_seq);
  if (!batch) return false;
  const used = request.rollouts.filter(({ id }) => isUsed(transaction, id));
  // A caller used the ids of its next siblings for its own rollouts: the group cannot be completed.
  if (used.some(({ id }) => !isSibling(transaction, id, group.seq)))
    return settleGroup(transaction, { group: group.id, batch: batch.id, state: 'failed', members: [] });
  if (used.length > 0) return false;
  transaction.run('UPDATE batch_groups SET replacements = replacements + ? WHERE seq = ?', request.rollouts.length, group.seq);
  addSiblings(transaction, { seq: group.seq, batch, isUrgent: true, task: group.task }, request.rollouts);
  return true;
}

function isSibling(transaction: Transaction, id: RolloutId, groupSeq: number): boolean {
  return (
    transaction.one('SELECT s.seq FROM siblings s JOIN rollouts USING (seq) WHERE id = ? AND group_seq = ?', id, groupSeq) !== undefined
  );
}

export function settleGroup(transaction: Transaction, settlement: Settlement): boolean {
  const { state, members } = settlement;
  const [batch, group] = [readBatch(transaction, settlement.batch), readGroup(transaction, settlement.group)];
  if (batch?.state !== 'open' || group?.state !== 'open' || group.batch_seq !== batch.seq) return false;
  const place = state === 'delivered' ? batch.delivered + 1 : null;
  moveWaste(transaction, group.seq, () => {
    const ended = 'UPDATE batch_groups SET state = ?, place = ?, ended_at = ? WHERE seq = ?';
    transaction.run(ended, state, place, transaction.nowMs, group.seq);
    const sql = 'UPDATE siblings SET place = ? WHERE seq = (SELECT seq FROM rollouts WHERE id = ?) AND group_seq = ?';
    for (const [index, id] of members.entries()) transaction.run(sql, index, id, group.seq);
  });
  stopSiblings(transaction, group.seq);
  if (state === 'stale') repeatStale(transaction, batch, group);
  else noteStorm(transaction, { batch, group, reason: settlement.blameless });
  if (state === 'delivered' || state === 'uniform') countRewards(transaction, batch.seq, group.seq);
  appendEvent(transaction, {
    kind: 'group-end',
    group: group.id,
    data: definedOf({ batch: batch.id, state, seq: place ?? undefined }),
  });
  if (place === null) return true;
  transaction.run('UPDATE batches SET delivered = ? WHERE seq = ?', place, batch.seq);
  if (place === batch.target) closeBatch(transaction, batch, 'met');
  else if (!isLast(batch) && isLast({ ...batch, delivered: place })) hurry(transaction, batch);
  return true;
}

/** Whether the batch lacks so few groups that a trainer waits for them: an eighth of its target, and at least one. */
function isLast({ target, delivered }: Pick<BatchRow, 'target' | 'delivered'>): boolean {
  return delivered > 0 && target - delivered <= Math.max(1, target / 8);
}

/** The queued siblings of a batch that reached its last groups go first. */
function hurry(transaction: Transaction, batch: BatchRow): void {
  const [usual, urgent] = [false, true].map((isUrgent) => openBatchClass(transaction, batch, isUrgent));
  transaction.run("UPDATE rollouts SET class = ? WHERE state = 'queued' AND line = 'due' AND class = ?", urgent ?? 0, usual ?? 0);
}

function openBatchClass(transaction: Transaction, batch: BatchRow, isUrgent: boolean): number {
  const { priority, weight = 1 } = readPlan(batch);
  return openClass(transaction, { kind: 'batch', name: batch.id, weight }, rankOf({ priority, isUrgent }));
}

/** Counts groups in a row that failed without blame on their tasks. Once they pause the batch, their tasks return to the queue. */
function noteStorm(
  transaction: Transaction,
  { batch, group, reason }: { readonly batch: BatchRow; readonly group: GroupRow; readonly reason: string | undefined },
): void {
  if (reason === undefined) {
    if (batch.storm > 0) transaction.run('UPDATE batches SET storm = 0 WHERE seq = ?', batch.seq);
    return;
  }
  const sql = 'UPDATE batches SET storm = storm + 1, storm_at = ?, storm_reason = ? WHERE seq = ?';
  transaction.run(sql, transaction.nowMs, reason, batch.seq);
  const storm = batch.storm + 1;
  if (storm < stormGroups) return;
  const last = "SELECT * FROM batch_groups WHERE batch_seq = ? AND state = 'failed' ORDER BY ended_at DESC, seq DESC LIMIT ?";
  const failed = storm > stormGroups ? [group] : transaction.all<GroupRow>(last, batch.seq, stormGroups);
  for (const one of failed) requeue(transaction, batch, one);
}

export function cursor(transaction: Transaction, name: string): number {
  return transaction.one<{ position: number }>('SELECT position FROM task_cursors WHERE name = ?', name)?.position ?? 0;
}
