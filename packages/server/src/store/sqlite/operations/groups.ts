// Groups of siblings: starting, carrying over, completing and settling them. Each function is one guarded change in the caller's
// transaction, so a group starts once, is delivered once, and never after its batch has ended.

import { type BatchId, definedOf, type GroupId, type RolloutId, type RolloutState } from '@millrace/protocol';
import {
  type NewGroup,
  type OpenGroup,
  type Settlement,
  type Sibling,
  type SurplusGroup,
  stormGroups,
  type Task,
} from '../../batch-store.ts';
import type { Transaction } from '../engine/connection.ts';
import { type BatchRow, closeBatch, countRewards, readBatch, stopSiblings } from './batches.ts';
import { appendEvent } from './events.ts';
import { insertRollout, type StoredSubmission } from './submit.ts';

interface GroupRow {
  readonly seq: number;
  readonly id: GroupId;
  readonly batch_seq: number;
  readonly state: string;
  readonly task_index: number;
  readonly task: string;
}

export type StoredGroup = Omit<NewGroup, 'rollouts'> & { readonly rollouts: readonly StoredSubmission[] };

export function beginGroup(transaction: Transaction, group: StoredGroup): boolean {
  const batch = readBatch(transaction, group.batch);
  if (batch?.state !== 'open' || batch.begun !== group.begun) return false;
  const taskIndex = takeTask(transaction, batch, group.from);
  if (taskIndex === undefined) return false;
  // If a caller already used these ids for its own rollouts, one task is lost, not the batch.
  const state = group.rollouts.some(({ id }) => isUsed(transaction, id)) ? 'failed' : 'open';
  const sql = `INSERT INTO batch_groups (id, batch_seq, state, task_index, task, created_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING seq`;
  const endedAt = state === 'open' ? null : transaction.nowMs;
  const task = JSON.stringify(group.task);
  const row = transaction.one<{ seq: number }>(sql, group.id, batch.seq, state, taskIndex, task, transaction.nowMs, endedAt);
  transaction.run('UPDATE batches SET begun = begun + 1 WHERE seq = ?', batch.seq);
  if (state === 'open') addSiblings(transaction, { seq: row?.seq ?? 0, batchSeq: batch.seq }, group.rollouts);
  const data = { batch: batch.id, task_index: taskIndex, siblings: group.rollouts.length };
  appendEvent(transaction, { kind: 'group-begin', group: group.id, data });
  if (state === 'failed')
    appendEvent(transaction, { kind: 'group-end', group: group.id, data: { batch: batch.id, state, reason: 'id in use' } });
  return true;
}

/** The task's index in the stream; absent when the task was already taken. */
function takeTask(transaction: Transaction, batch: BatchRow, from: NewGroup['from']): number | undefined {
  if (from.kind === 'queue') {
    const next = transaction.one<{ task_index: number }>(
      'SELECT task_index FROM batch_tasks WHERE batch_seq = ? AND n = ?',
      batch.seq,
      batch.taken,
    );
    if (next) transaction.run('UPDATE batches SET taken = taken + 1 WHERE seq = ?', batch.seq);
    return next?.task_index;
  }
  if (cursor(transaction, from.name) !== from.at) return undefined;
  const sql = 'INSERT INTO task_cursors (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = excluded.position';
  transaction.run(sql, from.name, from.to);
  return from.to - 1;
}

function addSiblings(
  transaction: Transaction,
  group: { readonly seq: number; readonly batchSeq: number },
  rollouts: readonly StoredSubmission[],
): void {
  for (const rollout of rollouts) {
    const seq = insertRollout(transaction, { ...rollout, state: 'queued' });
    transaction.run('INSERT INTO siblings (seq, group_seq, batch_seq) VALUES (?, ?, ?)', seq, group.seq, group.batchSeq);
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
  transaction.run(sql, batch.seq, group.seq);
  transaction.run('UPDATE batches SET carried = carried + 1 WHERE seq = ?', batch.seq);
  addSiblings(transaction, { seq: group.seq, batchSeq: batch.seq }, rollouts);
  const data = { batch: batch.id, task_index: group.task_index, siblings: rollouts.length, carried: true };
  appendEvent(transaction, { kind: 'group-begin', group: group.id, data });
  return true;
}

export function renewGroup(transaction: Transaction, request: { readonly batch: BatchId; readonly group: GroupId }): boolean {
  const [batch, group] = [readBatch(transaction, request.batch), readGroup(transaction, request.group)];
  if (batch?.state !== 'open' || group?.state !== 'surplus') return false;
  stopSiblings(transaction, group.seq);
  transaction.run("UPDATE batch_groups SET state = 'stale', ended_at = ? WHERE seq = ?", transaction.nowMs, group.seq);
  requeue(transaction, batch, group);
  appendEvent(transaction, { kind: 'group-end', group: group.id, data: { batch: batch.id, state: 'stale' } });
  return true;
}

function requeue(transaction: Transaction, batch: BatchRow, group: GroupRow): void {
  const sql = 'INSERT INTO batch_tasks (batch_seq, n, task_index, body) SELECT seq, line, ?, ? FROM batches WHERE seq = ?';
  transaction.run(sql, group.task_index, group.task, batch.seq);
  transaction.run('UPDATE batches SET line = line + 1 WHERE seq = ?', batch.seq);
}

export function replaceSiblings(
  transaction: Transaction,
  request: { readonly group: GroupId; readonly rollouts: readonly StoredSubmission[] },
): boolean {
  const group = readGroup(transaction, request.group);
  if (group?.state !== 'open') return false;
  const used = request.rollouts.filter(({ id }) => isUsed(transaction, id));
  if (used.some(({ id }) => !isSibling(transaction, id, group.seq))) return failGroup(transaction, group);
  if (used.length > 0) return false;
  transaction.run('UPDATE batch_groups SET replacements = replacements + ? WHERE seq = ?', request.rollouts.length, group.seq);
  addSiblings(transaction, { seq: group.seq, batchSeq: group.batch_seq }, request.rollouts);
  return true;
}

function isSibling(transaction: Transaction, id: RolloutId, groupSeq: number): boolean {
  return (
    transaction.one('SELECT s.seq FROM siblings s JOIN rollouts USING (seq) WHERE id = ? AND group_seq = ?', id, groupSeq) !== undefined
  );
}

/** For a group that cannot be completed because a caller used the ids of its next siblings for its own rollouts. */
function failGroup(transaction: Transaction, group: GroupRow): boolean {
  const batch = transaction.one<{ id: BatchId }>('SELECT id FROM batches WHERE seq = ?', group.batch_seq);
  return batch !== undefined && settleGroup(transaction, { group: group.id, batch: batch.id, state: 'failed', members: [] });
}

export function settleGroup(transaction: Transaction, settlement: Settlement): boolean {
  const { state, members } = settlement;
  const [batch, group] = [readBatch(transaction, settlement.batch), readGroup(transaction, settlement.group)];
  if (batch?.state !== 'open' || group?.state !== 'open' || group.batch_seq !== batch.seq) return false;
  const place = state === 'delivered' ? batch.delivered + 1 : null;
  transaction.run('UPDATE batch_groups SET state = ?, place = ?, ended_at = ? WHERE seq = ?', state, place, transaction.nowMs, group.seq);
  const sql = 'UPDATE siblings SET place = ? WHERE seq = (SELECT seq FROM rollouts WHERE id = ?) AND group_seq = ?';
  for (const [index, id] of members.entries()) transaction.run(sql, index, id, group.seq);
  stopSiblings(transaction, group.seq);
  if (state === 'stale') requeue(transaction, batch, group);
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
  return true;
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

interface SiblingRow {
  readonly group_id: GroupId;
  readonly task_index: number;
  readonly replacements: number;
  readonly group_created_at: number;
  readonly id: RolloutId;
  readonly state: RolloutState;
  readonly cancel_asked: number;
  readonly reward: number | null;
  readonly first_version: number | null;
  readonly failure: string | null;
}

const siblingColumns = `g.id AS group_id, g.task_index, g.replacements, g.created_at AS group_created_at, r.id, r.state, r.cancel_asked,
  json_extract(r.result, '$.reward') AS reward, json_extract(r.result, '$.policy_versions.first') AS first_version, r.failure`;
const siblingRows = `batch_groups g JOIN siblings s ON s.group_seq = g.seq JOIN rollouts r ON r.seq = s.seq`;
const byEnding = 'ORDER BY g.seq, r.ended_at IS NULL, r.ended_at, r.seq';

export function openGroups(transaction: Transaction, batch: BatchId): OpenGroup[] {
  const where = "WHERE g.state = 'open' AND g.batch_seq = (SELECT seq FROM batches WHERE id = ?)";
  return toGroups(transaction.all<SiblingRow>(`SELECT ${siblingColumns} FROM ${siblingRows} ${where} ${byEnding}`, batch));
}

export function surplusGroups(transaction: Transaction, request: { readonly batch: BatchId; readonly limit: number }): SurplusGroup[] {
  const where = `WHERE g.state = 'surplus' AND g.batch_seq IN (SELECT before.seq FROM batches AS mine JOIN batches AS before USING (series)
    WHERE mine.id = ? AND before.seq <> mine.seq AND before.state <> 'open' AND before.recipe = mine.recipe)`;
  const sql = `SELECT ${siblingColumns} FROM ${siblingRows} ${where} ${byEnding}`;
  const groups = toGroups(transaction.all<SiblingRow>(sql, request.batch));
  const worth = ({ siblings }: OpenGroup) => siblings.filter(({ reward, state }) => reward !== undefined || state === 'run').length;
  const best = groups.toSorted((a, b) => worth(b) - worth(a)).slice(0, request.limit);
  return best.map((group) => ({ ...group, task: groupTask(transaction, group.id) ?? {} }));
}

function toGroups(rows: readonly SiblingRow[]): OpenGroup[] {
  return [...Map.groupBy(rows, ({ group_id }) => group_id)].flatMap(([id, siblings]) => {
    const [first] = siblings;
    if (!first) return [];
    const { task_index: taskIndex, replacements, group_created_at: createdAtMs } = first;
    return [{ id, taskIndex, replacements, createdAtMs, siblings: siblings.map(toSibling) }];
  });
}

/** A reward counts only if the rollout is done. */
function toSibling(row: SiblingRow): Sibling {
  return {
    id: row.id,
    state: row.state,
    stopping: row.cancel_asked === 1,
    ...definedOf({
      reward: row.state === 'done' ? (row.reward ?? undefined) : undefined,
      firstVersion: row.first_version ?? undefined,
      failure: row.failure === null ? undefined : JSON.parse(row.failure),
    }),
  };
}

export function queuedTasks(
  transaction: Transaction,
  request: { readonly batch: BatchId; readonly limit: number },
): { taskIndex: number; task: Task }[] {
  const sql = `SELECT task_index, body FROM batch_tasks JOIN batches ON batches.seq = batch_seq
    WHERE batches.id = ? AND n >= taken ORDER BY n LIMIT ?`;
  const rows = transaction.all<{ task_index: number; body: string }>(sql, request.batch, request.limit);
  return rows.map(({ task_index, body }) => ({ taskIndex: task_index, task: JSON.parse(body) }));
}

export function groupTask(transaction: Transaction, id: GroupId): Task | undefined {
  const group = readGroup(transaction, id);
  return group && JSON.parse(group.task);
}

export function cursor(transaction: Transaction, name: string): number {
  return transaction.one<{ position: number }>('SELECT position FROM task_cursors WHERE name = ?', name)?.position ?? 0;
}
