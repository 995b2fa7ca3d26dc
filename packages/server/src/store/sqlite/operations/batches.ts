// Batches as rows: creating one, adding tasks, reading it with its counts, and ending it with its surplus.

import type { SQLInputValue } from 'node:sqlite';
import { type BatchId, type BatchState, definedOf, type GroupId, type GroupState, type RolloutId, type SeriesId } from '@millrace/protocol';
import {
  type BatchPause,
  type BatchPlan,
  type BatchRecord,
  type MoreTasks,
  type NewBatch,
  type OpenBatch,
  stormGroups,
  type Task,
} from '../../batch-store.ts';
import type { Transaction } from '../engine/connection.ts';
import { moveWaste, readWaste } from './batch/waste.ts';
import { appendEvent } from './events.ts';
import { parseCursor } from './queries.ts';
import { cancel, type RefusesNew, refuseIfFull } from './submit.ts';

export interface BatchRow {
  readonly seq: number;
  readonly id: BatchId;
  readonly digest: string;
  readonly series: SeriesId | null;
  readonly recipe: string;
  readonly state: BatchState;
  readonly plan: string;
  readonly target: number;
  readonly given: number;
  readonly line: number;
  readonly taken: number;
  readonly begun: number;
  readonly carried: number;
  readonly delivered: number;
  readonly closed: number;
  readonly created_at: number;
  readonly ended_at: number | null;
  readonly rewards: number;
  readonly reward_sum: number;
  readonly storm: number;
  readonly storm_at: number | null;
  readonly storm_reason: string | null;
}

export function readBatch(transaction: Transaction, id: BatchId): BatchRow | undefined {
  return transaction.one<BatchRow>('SELECT * FROM batches WHERE id = ?', id);
}

export function createBatch(transaction: Transaction, batch: NewBatch & RefusesNew): 'created' | 'known' | 'conflict' {
  const known = readBatch(transaction, batch.id);
  if (known) return known.digest === batch.digest ? 'known' : 'conflict';
  refuseIfFull(batch);
  const { id, digest, recipe, plan, webhook } = batch;
  const sql = `INSERT INTO batches (id, digest, series, recipe, state, plan, target, closed, created_at)
    VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?) RETURNING *`;
  const values = [id, digest, plan.series ?? null, recipe, JSON.stringify(plan), plan.target, Number(batch.closed), transaction.nowMs];
  const row = transaction.one<BatchRow>(sql, ...values);
  if (!row) throw new Error(`batch ${id} was not inserted`);
  if (webhook)
    transaction.run('INSERT INTO outbox (batch_seq, url, secret) VALUES (?, ?, ?)', row.seq, webhook.url, webhook.secret ?? null);
  addTasks(transaction, row, batch.tasks);
  const data = { batch: id, series: plan.series ?? null, scenario: plan.scenario, target: plan.target, group_size: plan.group_size };
  appendEvent(transaction, { kind: 'batch-open', data });
  return 'created';
}

export function appendTasks(
  transaction: Transaction,
  request: MoreTasks & { readonly id: BatchId } & RefusesNew,
): 'appended' | 'ended' | 'unknown' | { differs: string } {
  const row = readBatch(transaction, request.id);
  if (!row) return 'unknown';
  const { key } = request;
  const sql = 'SELECT n, tasks, closed FROM batch_appends WHERE batch_seq = ? AND key = ?';
  const known = key === undefined ? undefined : transaction.one<AppendRow>(sql, row.seq, key);
  if (known) {
    const differs = findDifference(transaction, { row, known, request });
    return differs === undefined ? 'appended' : { differs };
  }
  if (row.closed || row.state !== 'open') return 'ended';
  refuseIfFull(request);
  if (key !== undefined) {
    const insert = 'INSERT INTO batch_appends (batch_seq, key, n, tasks, closed) VALUES (?, ?, ?, ?, ?)';
    transaction.run(insert, row.seq, key, row.line, request.tasks.length, Number(request.closed));
  }
  addTasks(transaction, row, request.tasks);
  if (request.closed) transaction.run('UPDATE batches SET closed = 1 WHERE seq = ?', row.seq);
  appendEvent(transaction, { kind: 'batch-tasks', data: { batch: row.id, tasks: request.tasks.length, closed: request.closed } });
  return 'appended';
}

/** What was appended under a key; `n` is absent for one that an older version wrote. */
interface AppendRow {
  readonly n: number | null;
  readonly tasks: number | null;
  readonly closed: number | null;
}

/** How a repeated request differs from the one that used its key; absent if it is the same. */
function findDifference(
  transaction: Transaction,
  { row, known, request }: { readonly row: BatchRow; readonly known: AppendRow; readonly request: MoreTasks },
): string | undefined {
  if (known.n === null || known.tasks === null) return undefined;
  const { tasks, closed } = request;
  if (tasks.length !== known.tasks) return `tasks: it has ${tasks.length} tasks, and had ${known.tasks}`;
  if (Number(closed) !== known.closed) return `closed: it is ${closed}, and was ${!closed}`;
  const sql = 'SELECT body FROM batch_tasks WHERE batch_seq = ? AND n >= ? ORDER BY n LIMIT ?';
  const bodies = transaction.all<{ body: string }>(sql, row.seq, known.n, known.tasks);
  const index = tasks.findIndex((task, at) => JSON.stringify(task) !== bodies[at]?.body);
  return index < 0 ? undefined : `tasks[${index}]: it is another task`;
}

function addTasks(transaction: Transaction, row: BatchRow, tasks: readonly Task[]): void {
  const sql = 'INSERT INTO batch_tasks (batch_seq, n, task_index, body) VALUES (?, ?, ?, ?)';
  for (const [index, task] of tasks.entries()) transaction.run(sql, row.seq, row.line + index, row.given + index, JSON.stringify(task));
  transaction.run('UPDATE batches SET given = given + ?, line = line + ? WHERE seq = ?', tasks.length, tasks.length, row.seq);
}

export function batch(transaction: Transaction, id: BatchId): BatchRecord | undefined {
  const row = readBatch(transaction, id);
  return row && toBatchRecord(transaction, row);
}

export interface BatchFilter {
  readonly state?: BatchState;
  readonly series?: SeriesId;
  readonly after?: string;
  readonly limit: number;
}

export function batches(transaction: Transaction, filter: BatchFilter): { batches: BatchRecord[]; next?: string } {
  const wanted: [string, SQLInputValue | undefined][] = [
    ['seq > ?', parseCursor(filter.after)],
    ['state = ?', filter.state],
    ['series = ?', filter.series],
  ];
  const given = wanted.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  const where = given.map(({ sql }) => sql).join(' AND ');
  const sql = `SELECT * FROM batches WHERE ${where} ORDER BY seq LIMIT ?`;
  const rows = transaction.all<BatchRow>(sql, ...given.map(({ value }) => value), filter.limit + 1);
  const page = rows.slice(0, filter.limit);
  const last = page.at(-1);
  return {
    batches: page.map((row) => toBatchRecord(transaction, row)),
    ...definedOf({ next: last && rows.length > filter.limit ? String(last.seq) : undefined }),
  };
}

export function openBatches(transaction: Transaction): OpenBatch[] {
  return transaction.all<BatchRow>("SELECT * FROM batches WHERE state = 'open' ORDER BY seq").map((row) => {
    const groups = countGroups(transaction, row.seq);
    return {
      id: row.id,
      plan: readPlan(row),
      recipe: row.recipe,
      closed: row.closed === 1,
      open: groups.open,
      delivered: row.delivered,
      uniform: groups.uniform,
      failed: groups.failed,
      begun: row.begun,
      waiting: row.line - row.taken,
      createdAtMs: row.created_at,
      ...definedOf({ meanReward: meanRewardOf(row), before: readBefore(transaction, row), paused: pauseOf(row) }),
    };
  });
}

function readBefore(transaction: Transaction, row: BatchRow): OpenBatch['before'] {
  const sql = 'SELECT seq FROM batches WHERE series = ? AND seq < ? AND delivered > 0 ORDER BY seq DESC LIMIT 1';
  const before = row.series === null ? undefined : transaction.one<{ seq: number }>(sql, row.series, row.seq);
  if (!before) return undefined;
  const { delivered, uniform } = countGroups(transaction, before.seq);
  return { informative: delivered, judged: delivered + uniform };
}

export function resumeBatch(transaction: Transaction, id: BatchId): 'resumed' | 'ended' | 'unknown' {
  const row = readBatch(transaction, id);
  if (row?.state !== 'open') return row ? 'ended' : 'unknown';
  if (pauseOf(row)) {
    transaction.run('UPDATE batches SET storm = 0 WHERE seq = ?', row.seq);
    appendEvent(transaction, { kind: 'batch-resume', data: { batch: row.id } });
  }
  return 'resumed';
}

export function endBatch(transaction: Transaction, request: { readonly id: BatchId; readonly state: 'short' | 'cancelled' }): boolean {
  const row = readBatch(transaction, request.id);
  if (row?.state !== 'open') return false;
  closeBatch(transaction, row, request.state);
  return true;
}

/** Its open groups become surplus; their siblings stop, unless the target was met and the plan keeps them running. */
export function closeBatch(transaction: Transaction, row: BatchRow, state: 'met' | 'short' | 'cancelled'): void {
  transaction.run('UPDATE batches SET state = ?, closed = 1, ended_at = ? WHERE seq = ?', state, transaction.nowMs, row.seq);
  const open = transaction.all<{ seq: number; id: GroupId }>(
    "SELECT seq, id FROM batch_groups WHERE batch_seq = ? AND state = 'open'",
    row.seq,
  );
  for (const group of open) {
    const sql = "UPDATE batch_groups SET state = 'surplus', ended_at = ? WHERE seq = ?";
    moveWaste(transaction, group.seq, () => transaction.run(sql, transaction.nowMs, group.seq));
    if (state !== 'met' || readPlan(row).surplus === 'stop') stopSiblings(transaction, group.seq);
    appendEvent(transaction, { kind: 'group-end', group: group.id, data: { batch: row.id, state: 'surplus' } });
  }
  const data = { batch: row.id, state, groups: countGroups(transaction, row.seq), wasted: readWaste(transaction, row.seq) };
  appendEvent(transaction, { kind: 'batch-end', data });
}

/** Queued siblings end now; the workers of running ones are notified. */
export function stopSiblings(transaction: Transaction, groupSeq: number): void {
  const sql = 'SELECT id FROM siblings JOIN rollouts USING (seq) WHERE group_seq = ? AND ended_at IS NULL';
  for (const { id } of transaction.all<{ id: RolloutId }>(sql, groupSeq)) cancel(transaction, { id, tombstoneMs: 0 });
}

export function readPlan(row: Pick<BatchRow, 'plan'>): BatchPlan {
  return JSON.parse(row.plan);
}

function toBatchRecord(transaction: Transaction, row: BatchRow): BatchRecord {
  return {
    id: row.id,
    plan: readPlan(row),
    state: row.state,
    groups: countGroups(transaction, row.seq),
    carried: row.carried,
    tasks: { given: row.given, begun: row.begun, closed: row.closed === 1 },
    wasted: readWaste(transaction, row.seq),
    createdAtMs: row.created_at,
    ...definedOf({ meanReward: meanRewardOf(row), endedAtMs: row.ended_at ?? undefined, paused: pauseOf(row) }),
  };
}

function pauseOf({ state, storm, storm_at: failedAtMs, storm_reason: reason }: BatchRow): BatchPause | undefined {
  if (state !== 'open' || storm < stormGroups) return undefined;
  return { reason: reason ?? '', failedAtMs: failedAtMs ?? 0 };
}

function meanRewardOf({ rewards, reward_sum: sum }: BatchRow): number | undefined {
  return rewards === 0 ? undefined : sum / rewards;
}

/** Adds the rewards of a group that was judged, so that the mean needs no scan. */
export function countRewards(transaction: Transaction, batchSeq: number, groupSeq: number): void {
  const rewards = `SELECT count(*) AS n, total(json_extract(result, '$.reward')) AS sum FROM siblings JOIN rollouts USING (seq)
    WHERE group_seq = ? AND state = 'done' AND json_extract(result, '$.reward') IS NOT NULL`;
  const sql = `UPDATE batches SET rewards = rewards + n, reward_sum = reward_sum + sum FROM (${rewards}) WHERE seq = ?`;
  transaction.run(sql, groupSeq, batchSeq);
}

/** Read from counters that triggers keep. */
export function countGroups(transaction: Transaction, batchSeq: number): Record<GroupState, number> {
  const counts: Record<GroupState, number> = { open: 0, delivered: 0, uniform: 0, failed: 0, surplus: 0, stale: 0 };
  const sql = 'SELECT state, n FROM group_counts WHERE batch_seq = ?';
  for (const { state, n } of transaction.all<{ state: GroupState; n: number }>(sql, batchSeq)) counts[state] = n;
  return counts;
}
