// Groups of siblings: begun, taken over, completed and settled. Each function is one guarded change in the caller's
// transaction, so that a group is begun once, delivered once, and never after its batch is over.

import type { BatchId, GroupId, RolloutId, RolloutState } from '@millrace/protocol';
import type { KeptGroup, NewGroup, OpenGroup, Settlement, Sibling, Task } from '../../batch-store.ts';
import type { Session } from '../engine/session.ts';
import { type BatchRow, closeBatch, readBatch, stopSiblings } from './batches.ts';
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

export function beginGroup(session: Session, group: StoredGroup): boolean {
  const batch = readBatch(session, group.batch);
  if (batch?.state !== 'open' || batch.begun !== group.begun) return false;
  const taskIndex = takeTask(session, batch, group.from);
  if (taskIndex === undefined) return false;
  // A caller who has used these ids for rollouts of his own loses one task, not the batch.
  const state = group.rollouts.some(({ id }) => isUsed(session, id)) ? 'failed' : 'open';
  const sql = `INSERT INTO batch_groups (id, batch_seq, state, task_index, task, created_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING seq`;
  const endedAt = state === 'open' ? null : session.nowMs;
  const task = JSON.stringify(group.task);
  const row = session.one<{ seq: number }>(sql, group.id, batch.seq, state, taskIndex, task, session.nowMs, endedAt);
  session.run('UPDATE batches SET begun = begun + 1 WHERE seq = ?', batch.seq);
  if (state === 'open') addSiblings(session, { seq: row?.seq ?? 0, batchSeq: batch.seq }, group.rollouts);
  const data = { batch: batch.id, task_index: taskIndex, siblings: group.rollouts.length };
  appendEvent(session, { kind: 'group-begin', group: group.id, data });
  if (state === 'failed')
    appendEvent(session, { kind: 'group-end', group: group.id, data: { batch: batch.id, state, reason: 'id in use' } });
  return true;
}

/** The task's index in the stream; absent when somebody took it before. */
function takeTask(session: Session, batch: BatchRow, from: NewGroup['from']): number | undefined {
  if (from.kind === 'line') {
    const next = session.one<{ task_index: number }>(
      'SELECT task_index FROM batch_tasks WHERE batch_seq = ? AND n = ?',
      batch.seq,
      batch.taken,
    );
    if (next) session.run('UPDATE batches SET taken = taken + 1 WHERE seq = ?', batch.seq);
    return next?.task_index;
  }
  if (cursor(session, from.name) !== from.at) return undefined;
  const sql = 'INSERT INTO task_cursors (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = excluded.position';
  session.run(sql, from.name, from.to);
  return from.to - 1;
}

function addSiblings(
  session: Session,
  group: { readonly seq: number; readonly batchSeq: number },
  rollouts: readonly StoredSubmission[],
): void {
  for (const rollout of rollouts) {
    const seq = insertRollout(session, { ...rollout, state: 'queued' });
    session.run('INSERT INTO siblings (seq, group_seq, batch_seq) VALUES (?, ?, ?)', seq, group.seq, group.batchSeq);
  }
}

function isUsed(session: Session, id: RolloutId): boolean {
  return session.one('SELECT seq FROM rollouts WHERE id = ?', id) !== undefined;
}

function readGroup(session: Session, id: GroupId): GroupRow | undefined {
  return session.one<GroupRow>('SELECT * FROM batch_groups WHERE id = ?', id);
}

interface Taking {
  readonly batch: BatchId;
  readonly group: GroupId;
  readonly rollouts: readonly StoredSubmission[];
}

export function takeGroup(session: Session, { batch: batchId, group: groupId, rollouts }: Taking): boolean {
  const [batch, group] = [readBatch(session, batchId), readGroup(session, groupId)];
  if (batch?.state !== 'open' || group?.state !== 'surplus' || rollouts.some(({ id }) => isUsed(session, id))) return false;
  const sql = "UPDATE batch_groups SET state = 'open', batch_seq = ?, carried = 1, ended_at = NULL WHERE seq = ?";
  session.run(sql, batch.seq, group.seq);
  session.run('UPDATE batches SET carried = carried + 1 WHERE seq = ?', batch.seq);
  addSiblings(session, { seq: group.seq, batchSeq: batch.seq }, rollouts);
  const data = { batch: batch.id, task_index: group.task_index, siblings: rollouts.length, carried: true };
  appendEvent(session, { kind: 'group-begin', group: group.id, data });
  return true;
}

export function renewGroup(session: Session, request: { readonly batch: BatchId; readonly group: GroupId }): boolean {
  const [batch, group] = [readBatch(session, request.batch), readGroup(session, request.group)];
  if (batch?.state !== 'open' || group?.state !== 'surplus') return false;
  stopSiblings(session, group.seq);
  session.run("UPDATE batch_groups SET state = 'stale', ended_at = ? WHERE seq = ?", session.nowMs, group.seq);
  requeue(session, batch, group);
  appendEvent(session, { kind: 'group-end', group: group.id, data: { batch: batch.id, state: 'stale' } });
  return true;
}

function requeue(session: Session, batch: BatchRow, group: GroupRow): void {
  const sql = 'INSERT INTO batch_tasks (batch_seq, n, task_index, body) SELECT seq, line, ?, ? FROM batches WHERE seq = ?';
  session.run(sql, group.task_index, group.task, batch.seq);
  session.run('UPDATE batches SET line = line + 1 WHERE seq = ?', batch.seq);
}

export function replaceSiblings(
  session: Session,
  request: { readonly group: GroupId; readonly rollouts: readonly StoredSubmission[] },
): boolean {
  const group = readGroup(session, request.group);
  if (group?.state !== 'open') return false;
  const used = request.rollouts.filter(({ id }) => isUsed(session, id));
  if (used.some(({ id }) => !isSibling(session, id, group.seq))) return failGroup(session, group);
  if (used.length > 0) return false;
  session.run('UPDATE batch_groups SET replacements = replacements + ? WHERE seq = ?', request.rollouts.length, group.seq);
  addSiblings(session, { seq: group.seq, batchSeq: group.batch_seq }, request.rollouts);
  return true;
}

function isSibling(session: Session, id: RolloutId, groupSeq: number): boolean {
  return session.one('SELECT s.seq FROM siblings s JOIN rollouts USING (seq) WHERE id = ? AND group_seq = ?', id, groupSeq) !== undefined;
}

/** A caller has used the ids of its next siblings for rollouts of his own: it cannot be completed. */
function failGroup(session: Session, group: GroupRow): boolean {
  const batch = session.one<{ id: BatchId }>('SELECT id FROM batches WHERE seq = ?', group.batch_seq);
  return batch !== undefined && settleGroup(session, { group: group.id, batch: batch.id, state: 'failed', members: [] });
}

export function settleGroup(session: Session, settlement: Settlement): boolean {
  const { state, members } = settlement;
  const [batch, group] = [readBatch(session, settlement.batch), readGroup(session, settlement.group)];
  if (batch?.state !== 'open' || group?.state !== 'open' || group.batch_seq !== batch.seq) return false;
  const place = state === 'delivered' ? batch.delivered + 1 : null;
  session.run('UPDATE batch_groups SET state = ?, place = ?, ended_at = ? WHERE seq = ?', state, place, session.nowMs, group.seq);
  const sql = 'UPDATE siblings SET place = ? WHERE seq = (SELECT seq FROM rollouts WHERE id = ?) AND group_seq = ?';
  for (const [index, id] of members.entries()) session.run(sql, index, id, group.seq);
  stopSiblings(session, group.seq);
  if (state === 'stale') requeue(session, batch, group);
  appendEvent(session, { kind: 'group-end', group: group.id, data: { batch: batch.id, state, ...(place === null ? {} : { seq: place }) } });
  if (place === null) return true;
  session.run('UPDATE batches SET delivered = ? WHERE seq = ?', place, batch.seq);
  if (place === batch.target) closeBatch(session, batch, 'met');
  return true;
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
}

const siblingColumns = `g.id AS group_id, g.task_index, g.replacements, g.created_at AS group_created_at, r.id, r.state, r.cancel_asked,
  json_extract(r.result, '$.reward') AS reward, json_extract(r.result, '$.policy_versions.first') AS first_version`;
const siblingRows = `batch_groups g JOIN siblings s ON s.group_seq = g.seq JOIN rollouts r ON r.seq = s.seq`;
const byEnding = 'ORDER BY g.seq, r.ended_at IS NULL, r.ended_at, r.seq';

export function openGroups(session: Session, batch: BatchId): OpenGroup[] {
  const where = "WHERE g.state = 'open' AND g.batch_seq = (SELECT seq FROM batches WHERE id = ?)";
  return toGroups(session.all<SiblingRow>(`SELECT ${siblingColumns} FROM ${siblingRows} ${where} ${byEnding}`, batch));
}

export function keptGroups(session: Session, request: { readonly batch: BatchId; readonly limit: number }): KeptGroup[] {
  const where = `WHERE g.state = 'surplus' AND g.batch_seq IN (SELECT before.seq FROM batches AS mine JOIN batches AS before USING (series)
    WHERE mine.id = ? AND before.seq <> mine.seq AND before.state <> 'open' AND before.recipe = mine.recipe)`;
  const sql = `SELECT ${siblingColumns} FROM ${siblingRows} ${where} ${byEnding}`;
  const groups = toGroups(session.all<SiblingRow>(sql, request.batch));
  const worth = ({ siblings }: OpenGroup) => siblings.filter(({ reward, state }) => reward !== undefined || state === 'run').length;
  const best = groups.toSorted((a, b) => worth(b) - worth(a)).slice(0, request.limit);
  return best.map((group) => ({ ...group, task: groupTask(session, group.id) ?? {} }));
}

function toGroups(rows: readonly SiblingRow[]): OpenGroup[] {
  return [...Map.groupBy(rows, ({ group_id }) => group_id)].flatMap(([id, siblings]) => {
    const [first] = siblings;
    if (!first) return [];
    const { task_index: taskIndex, replacements, group_created_at: createdAtMs } = first;
    return [{ id, taskIndex, replacements, createdAtMs, siblings: siblings.map(toSibling) }];
  });
}

/** A reward counts only where the rollout is done. */
function toSibling(row: SiblingRow): Sibling {
  return {
    id: row.id,
    state: row.state,
    stopping: row.cancel_asked === 1,
    ...(row.state === 'done' && row.reward !== null ? { reward: row.reward } : {}),
    ...(row.first_version === null ? {} : { firstVersion: row.first_version }),
  };
}

export function lineTasks(
  session: Session,
  request: { readonly batch: BatchId; readonly limit: number },
): { taskIndex: number; task: Task }[] {
  const sql = `SELECT task_index, body FROM batch_tasks JOIN batches ON batches.seq = batch_seq
    WHERE batches.id = ? AND n >= taken ORDER BY n LIMIT ?`;
  const rows = session.all<{ task_index: number; body: string }>(sql, request.batch, request.limit);
  return rows.map(({ task_index, body }) => ({ taskIndex: task_index, task: JSON.parse(body) }));
}

export function groupTask(session: Session, id: GroupId): Task | undefined {
  const group = readGroup(session, id);
  return group && JSON.parse(group.task);
}

export function cursor(session: Session, name: string): number {
  return session.one<{ position: number }>('SELECT position FROM task_cursors WHERE name = ?', name)?.position ?? 0;
}
