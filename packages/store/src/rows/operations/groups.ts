// Groups of siblings: starting, carrying over, completing and settling them. Each function is one guarded change in the caller's
// transaction, so a group starts once, is delivered once, and never after its batch has ended.

import type { BatchId, GroupId, RolloutId } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import { type NewGroup, type Settlement, stormGroups } from '../../batch-store.ts';
import type { Transaction } from '../../transaction.ts';
import { rankOf } from '../../work-class.ts';
import { moveWaste } from './batch/waste.ts';
import { type BatchRow, closeBatch, countRewards, lockBatch, readPlan, stopSiblings } from './batches.ts';
import { openClass } from './classes.ts';
import { insertRollouts, type StoredSubmission } from './submit.ts';

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

type StoredGroup = Omit<NewGroup, 'rollouts'> & { readonly rollouts: readonly StoredSubmission[] };

export async function beginGroup(transaction: Transaction, group: StoredGroup): Promise<boolean> {
  const batch = await lockBatch(transaction, group.batch);
  if (batch?.state !== 'open' || batch.begun !== group.begun) return false;
  const taken = await takeTask(transaction, batch, group.from);
  if (taken === undefined) return false;
  const { task_index: taskIndex, repeats } = taken;
  // If a caller already used these ids for its own rollouts, one task is lost, not the batch.
  const state = (await findUsed(transaction, group.rollouts)).length > 0 ? 'failed' : 'open';
  const sql = `INSERT INTO batch_groups (id, batch_seq, state, task_index, task, repeats, created_at, ended_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`;
  const endedAt = state === 'open' ? null : transaction.nowMs;
  const task = JSON.stringify(group.task);
  const row = await transaction.one<{ seq: number }>(sql, group.id, batch.seq, state, taskIndex, task, repeats, transaction.nowMs, endedAt);
  await transaction.run('UPDATE batches SET begun = begun + 1 WHERE seq = ?', batch.seq);
  if (state === 'open') await addSiblings(transaction, { seq: row?.seq ?? 0, batch, isUrgent: isLast(batch), task }, group.rollouts);
  const data = { batch: batch.id, task_index: taskIndex, siblings: group.rollouts.length };
  await transaction.appendEvent({ kind: 'group-begin', group: group.id, data });
  if (state === 'failed')
    await transaction.appendEvent({ kind: 'group-end', group: group.id, data: { batch: batch.id, state, reason: 'id in use' } });
  return true;
}

type TakenTask = Pick<GroupRow, 'task_index' | 'repeats'>;

/** The task's index in the stream; absent when the task was already taken. */
async function takeTask(transaction: Transaction, batch: BatchRow, from: NewGroup['from']): Promise<TakenTask | undefined> {
  if (from.kind === 'queue') {
    const queued = 'SELECT task_index, repeats FROM batch_tasks WHERE batch_seq = ? AND n = ?';
    const next = await transaction.one<TakenTask>(queued, batch.seq, batch.taken);
    if (next) await transaction.run('UPDATE batches SET taken = taken + 1 WHERE seq = ?', batch.seq);
    return next;
  }
  if ((await cursor(transaction, from.name)) !== from.at) return undefined;
  const sql = `INSERT INTO task_cursors (name, position) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE task_cursors.position = ?`;
  if ((await transaction.run(sql, from.name, from.to, from.at)) === 0) return undefined;
  return { task_index: from.to - 1, repeats: 0 };
}

async function addSiblings(
  transaction: Transaction,
  group: { readonly seq: number; readonly batch: BatchRow; readonly isUrgent: boolean; readonly task: string },
  rollouts: readonly StoredSubmission[],
): Promise<void> {
  const { seq: groupSeq, batch, isUrgent, task: groupTask } = group;
  const own = await openBatchClass(transaction, batch, isUrgent);
  const added = rollouts.map((rollout) => ({ ...rollout, state: 'queued' as const, class: own, isSibling: true, groupTask }));
  const seqs = await insertRollouts(transaction, added);
  await transaction.insert(
    'siblings (seq, group_seq, batch_seq)',
    seqs.map((seq) => [seq, groupSeq, batch.seq]),
  );
}

/** The ids that belong to rollouts. */
async function findUsed(transaction: Transaction, rollouts: readonly StoredSubmission[]): Promise<RolloutId[]> {
  const ids = rollouts.map(({ id }) => id);
  return (await transaction.allOf<{ id: RolloutId }>('SELECT id FROM rollouts WHERE id = ?', ids)).map(({ id }) => id);
}

async function lockGroup(transaction: Transaction, id: GroupId): Promise<GroupRow | undefined> {
  return await transaction.one<GroupRow>('SELECT * FROM batch_groups WHERE id = ? FOR UPDATE', id);
}

interface GroupTransfer {
  readonly batch: BatchId;
  readonly group: GroupId;
  readonly rollouts: readonly StoredSubmission[];
}

export async function takeGroup(transaction: Transaction, { batch: batchId, group: groupId, rollouts }: GroupTransfer): Promise<boolean> {
  const [batch, group] = [await lockBatch(transaction, batchId), await lockGroup(transaction, groupId)];
  if (batch?.state !== 'open' || group?.state !== 'surplus' || (await findUsed(transaction, rollouts)).length > 0) return false;
  const sql = "UPDATE batch_groups SET state = 'open', batch_seq = ?, carried = 1, ended_at = NULL WHERE seq = ?";
  await moveWaste(transaction, group.seq, () => transaction.run(sql, batch.seq, group.seq));
  await transaction.run('UPDATE batches SET carried = carried + 1 WHERE seq = ?', batch.seq);
  const own = await openBatchClass(transaction, batch, isLast(batch));
  const live = 'SELECT seq FROM siblings JOIN rollouts USING (seq) WHERE group_seq = ? AND ended_at IS NULL';
  await transaction.run(`UPDATE rollouts SET class = ? WHERE seq IN (${live})`, own, group.seq);
  await addSiblings(transaction, { seq: group.seq, batch, isUrgent: isLast(batch), task: group.task }, rollouts);
  const data = { batch: batch.id, task_index: group.task_index, siblings: rollouts.length, carried: true };
  await transaction.appendEvent({ kind: 'group-begin', group: group.id, data });
  return true;
}

export async function renewGroup(
  transaction: Transaction,
  request: { readonly batch: BatchId; readonly group: GroupId },
): Promise<boolean> {
  const [batch, group] = [await lockBatch(transaction, request.batch), await lockGroup(transaction, request.group)];
  if (batch?.state !== 'open' || group?.state !== 'surplus') return false;
  await stopSiblings(transaction, group.seq);
  const sql = "UPDATE batch_groups SET state = 'stale', ended_at = ? WHERE seq = ?";
  await moveWaste(transaction, group.seq, () => transaction.run(sql, transaction.nowMs, group.seq));
  await repeatStale(transaction, batch, group);
  await transaction.appendEvent({ kind: 'group-end', group: group.id, data: { batch: batch.id, state: 'stale' } });
  return true;
}

/** A task whose groups were stale this many times is dropped: its weights change faster than it can be sampled. */
const mostRepeats = 8;

async function repeatStale(transaction: Transaction, batch: BatchRow, group: GroupRow): Promise<void> {
  if (group.repeats < mostRepeats) await requeue(transaction, batch, { ...group, repeats: group.repeats + 1 });
}

async function requeue(transaction: Transaction, batch: BatchRow, group: GroupRow): Promise<void> {
  const sql =
    'INSERT INTO batch_tasks (batch_seq, n, task_index, body, repeats) SELECT seq, line, CAST(? AS BIGINT), ?, CAST(? AS BIGINT) FROM batches WHERE seq = ?';
  await transaction.run(sql, group.task_index, group.task, group.repeats, batch.seq);
  await transaction.run('UPDATE batches SET line = line + 1 WHERE seq = ?', batch.seq);
}

export async function replaceSiblings(
  transaction: Transaction,
  request: { readonly group: GroupId; readonly rollouts: readonly StoredSubmission[] },
): Promise<boolean> {
  // The batch is locked before its group, as everywhere.
  const owner = 'SELECT * FROM batches WHERE seq = (SELECT batch_seq FROM batch_groups WHERE id = ?) FOR UPDATE';
  const batch = await transaction.one<BatchRow>(owner, request.group);
  const group = await lockGroup(transaction, request.group);
  if (!batch || group?.state !== 'open' || group.batch_seq !== batch.seq) return false;
  const used = await findUsed(transaction, request.rollouts);
  // A caller used the ids of its next siblings for its own rollouts: the group cannot be completed.
  if ((await Array.fromAsync(used, (id) => isSibling(transaction, id, group.seq))).includes(false))
    return await settleGroup(transaction, { group: group.id, batch: batch.id, state: 'failed', members: [] });
  if (used.length > 0) return false;
  await transaction.run('UPDATE batch_groups SET replacements = replacements + ? WHERE seq = ?', request.rollouts.length, group.seq);
  await addSiblings(transaction, { seq: group.seq, batch, isUrgent: true, task: group.task }, request.rollouts);
  return true;
}

async function isSibling(transaction: Transaction, id: RolloutId, groupSeq: number): Promise<boolean> {
  return (
    (await transaction.one('SELECT s.seq FROM siblings s JOIN rollouts USING (seq) WHERE id = ? AND group_seq = ?', id, groupSeq)) !==
    undefined
  );
}

export async function settleGroup(transaction: Transaction, settlement: Settlement): Promise<boolean> {
  const { state, members } = settlement;
  const [batch, group] = [await lockBatch(transaction, settlement.batch), await lockGroup(transaction, settlement.group)];
  if (batch?.state !== 'open' || group?.state !== 'open' || group.batch_seq !== batch.seq) return false;
  const place = state === 'delivered' ? batch.delivered + 1 : null;
  await moveWaste(transaction, group.seq, async () => {
    const ended = 'UPDATE batch_groups SET state = ?, place = ?, ended_at = ? WHERE seq = ?';
    await transaction.run(ended, state, place, transaction.nowMs, group.seq);
    const sql = 'UPDATE siblings SET place = ? WHERE seq = (SELECT seq FROM rollouts WHERE id = ?) AND group_seq = ?';
    for (const [index, id] of members.entries()) await transaction.run(sql, index, id, group.seq);
  });
  await stopSiblings(transaction, group.seq);
  if (state === 'stale') await repeatStale(transaction, batch, group);
  else await noteStorm(transaction, { batch, group, reason: settlement.blameless });
  if (state === 'delivered' || state === 'uniform') await countRewards(transaction, batch.seq, group.seq);
  await transaction.appendEvent({
    kind: 'group-end',
    group: group.id,
    data: definedOf({ batch: batch.id, state, seq: place ?? undefined }),
  });
  if (place === null) return true;
  await transaction.run('UPDATE batches SET delivered = ? WHERE seq = ?', place, batch.seq);
  if (place === batch.target) await closeBatch(transaction, batch, 'met');
  else if (!isLast(batch) && isLast({ ...batch, delivered: place })) await hurry(transaction, batch);
  return true;
}

/** Whether the batch lacks so few groups that a trainer waits for them: an eighth of its target, and at least one. */
function isLast({ target, delivered }: Pick<BatchRow, 'target' | 'delivered'>): boolean {
  return delivered > 0 && target - delivered <= Math.max(1, target / 8);
}

/** The queued siblings of a batch that reached its last groups go first. */
async function hurry(transaction: Transaction, batch: BatchRow): Promise<void> {
  const [usual, urgent] = await Array.fromAsync([false, true], (isUrgent) => openBatchClass(transaction, batch, isUrgent));
  const sql = "UPDATE rollouts INDEXED BY rollouts_due SET class = ? WHERE state = 'queued' AND line = 'due' AND class = ?";
  await transaction.run(sql, urgent ?? 0, usual ?? 0);
}

async function openBatchClass(transaction: Transaction, batch: BatchRow, isUrgent: boolean): Promise<number> {
  const { priority, weight = 1, requires } = readPlan(batch);
  return await openClass(transaction, { kind: 'batch', name: batch.id, weight, requires }, rankOf({ priority, isUrgent }));
}

/** Counts groups in a row that failed without blame on their tasks. Once they pause the batch, their tasks return to the queue. */
async function noteStorm(
  transaction: Transaction,
  { batch, group, reason }: { readonly batch: BatchRow; readonly group: GroupRow; readonly reason: string | undefined },
): Promise<void> {
  if (reason === undefined) {
    if (batch.storm > 0) await transaction.run('UPDATE batches SET storm = 0 WHERE seq = ?', batch.seq);
    return;
  }
  const sql = 'UPDATE batches SET storm = storm + 1, storm_at = ?, storm_reason = ? WHERE seq = ?';
  await transaction.run(sql, transaction.nowMs, reason, batch.seq);
  const storm = batch.storm + 1;
  if (storm < stormGroups) return;
  const last = "SELECT * FROM batch_groups WHERE batch_seq = ? AND state = 'failed' ORDER BY ended_at DESC, seq DESC LIMIT ?";
  const failed = storm > stormGroups ? [group] : await transaction.all<GroupRow>(last, batch.seq, stormGroups);
  for (const one of failed) await requeue(transaction, batch, one);
}

export async function cursor(transaction: Transaction, name: string): Promise<number> {
  return (await transaction.one<{ position: number }>('SELECT position FROM task_cursors WHERE name = ?', name))?.position ?? 0;
}
