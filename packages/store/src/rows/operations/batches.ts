// Batches as rows: creating one, adding tasks, reading it with its counts, and ending it with its surplus.

import type { BatchId, BatchState, GroupId, GroupState, RolloutId, SeriesId } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
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
import type { SqlValue, Transaction } from '../../transaction.ts';
import { moveWaste, readWaste } from './batch/waste.ts';
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

/** For a change: no other call can change the batch until the transaction ends. */
export async function lockBatch(transaction: Transaction, id: BatchId): Promise<BatchRow | undefined> {
  return await transaction.one<BatchRow>('SELECT * FROM batches WHERE id = ? FOR UPDATE', id);
}

export async function readBatch(transaction: Transaction, id: BatchId): Promise<BatchRow | undefined> {
  return await transaction.one<BatchRow>('SELECT * FROM batches WHERE id = ?', id);
}

export async function createBatch(transaction: Transaction, batch: NewBatch & RefusesNew): Promise<'created' | 'known' | 'conflict'> {
  const known = await readBatch(transaction, batch.id);
  if (known) return known.digest === batch.digest ? 'known' : 'conflict';
  refuseIfFull(batch);
  const { id, digest, recipe, plan, webhook } = batch;
  const sql = `INSERT INTO batches (id, digest, series, recipe, state, plan, target, closed, created_at)
    VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?) RETURNING *`;
  const values = [id, digest, plan.series ?? null, recipe, JSON.stringify(plan), plan.target, Number(batch.closed), transaction.nowMs];
  const row = await transaction.one<BatchRow>(sql, ...values);
  if (!row) throw new Error(`batch ${id} was not inserted`);
  if (webhook)
    await transaction.run('INSERT INTO outbox (batch_seq, url, secret) VALUES (?, ?, ?)', row.seq, webhook.url, webhook.secret ?? null);
  await addTasks(transaction, row, batch.tasks);
  const data = { batch: id, series: plan.series ?? null, scenario: plan.scenario, target: plan.target, group_size: plan.group_size };
  await transaction.appendEvent({ kind: 'batch-open', data });
  return 'created';
}

export async function appendTasks(
  transaction: Transaction,
  request: MoreTasks & { readonly id: BatchId } & RefusesNew,
): Promise<'appended' | 'ended' | 'unknown' | { differs: string }> {
  const row = await lockBatch(transaction, request.id);
  if (!row) return 'unknown';
  const { key } = request;
  const sql = 'SELECT n, tasks, closed FROM batch_appends WHERE batch_seq = ? AND key = ?';
  const known = key === undefined ? undefined : await transaction.one<AppendRow>(sql, row.seq, key);
  if (known) {
    const differs = await findDifference(transaction, { row, known, request });
    return differs === undefined ? 'appended' : { differs };
  }
  if (row.closed || row.state !== 'open') return 'ended';
  refuseIfFull(request);
  if (key !== undefined) {
    const insert = 'INSERT INTO batch_appends (batch_seq, key, n, tasks, closed) VALUES (?, ?, ?, ?, ?)';
    await transaction.run(insert, row.seq, key, row.line, request.tasks.length, Number(request.closed));
  }
  await addTasks(transaction, row, request.tasks);
  if (request.closed) await transaction.run('UPDATE batches SET closed = 1 WHERE seq = ?', row.seq);
  await transaction.appendEvent({ kind: 'batch-tasks', data: { batch: row.id, tasks: request.tasks.length, closed: request.closed } });
  return 'appended';
}

/** What was appended under a key; `n` is absent for one that an older version wrote. */
interface AppendRow {
  readonly n: number | null;
  readonly tasks: number | null;
  readonly closed: number | null;
}

/** How a repeated request differs from the one that used its key; absent if it is the same. */
async function findDifference(
  transaction: Transaction,
  { row, known, request }: { readonly row: BatchRow; readonly known: AppendRow; readonly request: MoreTasks },
): Promise<string | undefined> {
  if (known.n === null || known.tasks === null) return undefined;
  const { tasks, closed } = request;
  if (tasks.length !== known.tasks) return `tasks: it has ${tasks.length} tasks, and had ${known.tasks}`;
  if (Number(closed) !== known.closed) return `closed: it is ${closed}, and was ${!closed}`;
  const sql = 'SELECT body FROM batch_tasks WHERE batch_seq = ? AND n >= ? ORDER BY n LIMIT ?';
  const bodies = await transaction.all<{ body: string }>(sql, row.seq, known.n, known.tasks);
  const index = tasks.findIndex((task, at) => JSON.stringify(task) !== bodies[at]?.body);
  return index < 0 ? undefined : `tasks[${index}]: it is another task`;
}

async function addTasks(transaction: Transaction, row: BatchRow, tasks: readonly Task[]): Promise<void> {
  await transaction.insert(
    'batch_tasks (batch_seq, n, task_index, body)',
    tasks.map((task, index) => [row.seq, row.line + index, row.given + index, JSON.stringify(task)]),
  );
  await transaction.run('UPDATE batches SET given = given + ?, line = line + ? WHERE seq = ?', tasks.length, tasks.length, row.seq);
}

export async function batch(transaction: Transaction, id: BatchId): Promise<BatchRecord | undefined> {
  const row = await readBatch(transaction, id);
  return row && (await toBatchRecord(transaction, row));
}

interface BatchFilter {
  readonly state?: BatchState;
  readonly series?: SeriesId;
  readonly after?: string;
  readonly limit: number;
}

export async function batches(transaction: Transaction, filter: BatchFilter): Promise<{ batches: BatchRecord[]; next?: string }> {
  const wanted: [string, SqlValue | undefined][] = [
    ['seq > ?', parseCursor(filter.after)],
    ['state = ?', filter.state],
    ['series = ?', filter.series],
  ];
  const given = wanted.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  const where = given.map(({ sql }) => sql).join(' AND ');
  const sql = `SELECT * FROM batches WHERE ${where} ORDER BY seq LIMIT ?`;
  const rows = await transaction.all<BatchRow>(sql, ...given.map(({ value }) => value), filter.limit + 1);
  const page = rows.slice(0, filter.limit);
  const last = page.at(-1);
  return {
    batches: await Array.fromAsync(page, (row) => toBatchRecord(transaction, row)),
    ...definedOf({ next: last && rows.length > filter.limit ? String(last.seq) : undefined }),
  };
}

export async function openBatches(transaction: Transaction): Promise<OpenBatch[]> {
  const rows = await transaction.all<BatchRow>("SELECT * FROM batches WHERE state = 'open' ORDER BY seq");
  return await Array.fromAsync(rows, async (row) => {
    const groups = await countGroups(transaction, row.seq);
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
      ...definedOf({ meanReward: meanRewardOf(row), before: await readBefore(transaction, row), paused: pauseOf(row) }),
    };
  });
}

async function readBefore(transaction: Transaction, row: BatchRow): Promise<OpenBatch['before']> {
  const sql = 'SELECT seq FROM batches WHERE series = ? AND seq < ? AND delivered > 0 ORDER BY seq DESC LIMIT 1';
  const before = row.series === null ? undefined : await transaction.one<{ seq: number }>(sql, row.series, row.seq);
  if (!before) return undefined;
  const { delivered, uniform } = await countGroups(transaction, before.seq);
  return { informative: delivered, judged: delivered + uniform };
}

export async function resumeBatch(transaction: Transaction, id: BatchId): Promise<'resumed' | 'ended' | 'unknown'> {
  const row = await lockBatch(transaction, id);
  if (row?.state !== 'open') return row ? 'ended' : 'unknown';
  if (pauseOf(row)) {
    await transaction.run('UPDATE batches SET storm = 0 WHERE seq = ?', row.seq);
    await transaction.appendEvent({ kind: 'batch-resume', data: { batch: row.id } });
  }
  return 'resumed';
}

export async function endBatch(
  transaction: Transaction,
  request: { readonly id: BatchId; readonly state: 'short' | 'cancelled'; readonly seen?: Pick<OpenBatch, 'begun' | 'waiting'> },
): Promise<boolean> {
  const { seen } = request;
  const row = await lockBatch(transaction, request.id);
  if (row?.state !== 'open') return false;
  if (seen && (row.begun !== seen.begun || row.line - row.taken !== seen.waiting)) return false;
  if (seen && (await countGroups(transaction, row.seq)).open > 0) return false;
  await closeBatch(transaction, row, request.state);
  return true;
}

/** Its open groups become surplus; their siblings stop, unless the target was met and the plan keeps them running. */
export async function closeBatch(transaction: Transaction, row: BatchRow, state: 'met' | 'short' | 'cancelled'): Promise<void> {
  await transaction.run('UPDATE batches SET state = ?, closed = 1, ended_at = ? WHERE seq = ?', state, transaction.nowMs, row.seq);
  const open = await transaction.all<{ seq: number; id: GroupId }>(
    "SELECT seq, id FROM batch_groups WHERE batch_seq = ? AND state = 'open'",
    row.seq,
  );
  for (const group of open) {
    const sql = "UPDATE batch_groups SET state = 'surplus', ended_at = ? WHERE seq = ?";
    await moveWaste(transaction, group.seq, () => transaction.run(sql, transaction.nowMs, group.seq));
    if (state !== 'met' || readPlan(row).surplus === 'stop') await stopSiblings(transaction, group.seq);
    await transaction.appendEvent({ kind: 'group-end', group: group.id, data: { batch: row.id, state: 'surplus' } });
  }
  const data = { batch: row.id, state, groups: await countGroups(transaction, row.seq), wasted: await readWaste(transaction, row.seq) };
  await transaction.appendEvent({ kind: 'batch-end', data });
}

/** Queued siblings end now; the workers of running ones are notified. */
export async function stopSiblings(transaction: Transaction, groupSeq: number): Promise<void> {
  const sql = 'SELECT id FROM siblings JOIN rollouts USING (seq) WHERE group_seq = ? AND ended_at IS NULL';
  for (const { id } of await transaction.all<{ id: RolloutId }>(sql, groupSeq)) await cancel(transaction, { id, tombstoneMs: 0 });
}

export function readPlan(row: Pick<BatchRow, 'plan'>): BatchPlan {
  return JSON.parse(row.plan);
}

async function toBatchRecord(transaction: Transaction, row: BatchRow): Promise<BatchRecord> {
  return {
    id: row.id,
    plan: readPlan(row),
    state: row.state,
    groups: await countGroups(transaction, row.seq),
    carried: row.carried,
    tasks: { given: row.given, begun: row.begun, closed: row.closed === 1 },
    wasted: await readWaste(transaction, row.seq),
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
export async function countRewards(transaction: Transaction, batchSeq: number, groupSeq: number): Promise<void> {
  const rewards = `SELECT count(*) AS n, coalesce(sum(json_extract(result, '$.reward')), 0) AS total FROM siblings JOIN rollouts USING (seq)
    WHERE group_seq = ? AND state = 'done' AND json_extract(result, '$.reward') IS NOT NULL`;
  const sql = `UPDATE batches SET rewards = rewards + judged.n, reward_sum = reward_sum + judged.total FROM (${rewards}) AS judged WHERE seq = ?`;
  await transaction.run(sql, groupSeq, batchSeq);
}

/** Read from counters that triggers keep. */
async function countGroups(transaction: Transaction, batchSeq: number): Promise<Record<GroupState, number>> {
  const counts: Record<GroupState, number> = { open: 0, delivered: 0, uniform: 0, failed: 0, surplus: 0, stale: 0 };
  const sql = 'SELECT state, n FROM group_counts WHERE batch_seq = ?';
  for (const { state, n } of await transaction.all<{ state: GroupState; n: number }>(sql, batchSeq)) counts[state] = n;
  return counts;
}
