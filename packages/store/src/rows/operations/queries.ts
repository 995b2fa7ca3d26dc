// Queries for rollouts: one, a page, a trajectory, and the count in each state.

import type { GroupId, RolloutId, RolloutState, WorkerId } from '@millrace/protocol';
import { definedOf, RolloutError } from '@millrace/protocol/plain';
import type { RolloutRecord } from '../../rollout-record.ts';
import type { ListFilter } from '../../store.ts';
import type { SqlValue, Transaction } from '../../transaction.ts';
import { fromStoredName } from '../../work-class.ts';
import { groupTaskColumn, toSubmission } from './batch/group-task.ts';

export interface RecordRow {
  readonly seq: number;
  readonly id: RolloutId;
  readonly digest: string;
  readonly group_id: GroupId | null;
  readonly state: RolloutState;
  readonly attempt: number;
  readonly retries: number;
  readonly losses: number;
  readonly worker: WorkerId | null;
  readonly created_at: number;
  readonly ended_at: number | null;
  readonly result: string | null;
  readonly failure: string | null;
  readonly failures: string;
  readonly body: string;
  readonly group_task: string | null;
  readonly class_name: string | null;
}

const className = '(SELECT classes.name FROM classes WHERE classes.seq = rollouts.class) AS class_name';
export const records = `SELECT rollouts.*, submissions.body, ${groupTaskColumn}, ${className} FROM rollouts JOIN submissions USING (seq)`;

export async function get(transaction: Transaction, id: RolloutId): Promise<RolloutRecord | undefined> {
  const row = await transaction.one<RecordRow>(`${records} WHERE id = ?`, id);
  return row && toRecord(row);
}

export async function list(transaction: Transaction, filter: ListFilter): Promise<{ rollouts: RolloutRecord[]; next?: string }> {
  const { state, group, batch, scenario, prefix, limit } = filter;
  const isNewestFirst = filter.order === 'newest';
  // Each order is that of an index, so a page is read without a sort.
  const key = prefix !== undefined ? 'rollouts.id' : batch === undefined ? 'rollouts.seq' : 'siblings.seq';
  const wanted: [string, SqlValue | undefined][] = [
    [`${key} ${isNewestFirst ? '<' : '>'} ?`, toStart(filter)],
    ['rollouts.id >= ?', prefix],
    ['rollouts.id < ?', prefix && toPrefixEnd(prefix)],
    ['state = ?', state],
    ['group_id = ?', group],
    ['siblings.batch_seq = (SELECT seq FROM batches WHERE batches.id = ?)', batch],
    ['scenario = ?', scenario],
  ];
  const given = wanted.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  const where = given.map(({ sql }) => sql).join(' AND ');
  const values = given.map(({ value }) => value);
  const from = batch === undefined ? records : `${records} JOIN siblings USING (seq)`;
  const order = `ORDER BY ${key} ${isNewestFirst ? 'DESC' : 'ASC'}`;
  const rows = await transaction.all<RecordRow>(`${from} WHERE ${where} ${order} LIMIT ?`, ...values, limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = last && (prefix === undefined ? String(last.seq) : last.id);
  return { rollouts: page.map(toRecord), ...definedOf({ next: rows.length > limit ? next : undefined }) };
}

/** Every id of a page comes after this one in the order of the list; absent for the first page of a prefix. */
function toStart({ prefix, order, after }: ListFilter): SqlValue | undefined {
  if (prefix !== undefined) return after;
  return after === undefined && order === 'newest' ? Number.MAX_SAFE_INTEGER : parseCursor(after);
}

/** `~` comes after every character of an id. */
function toPrefixEnd(prefix: string): string {
  return `${prefix}~`;
}

interface StoredTrajectory {
  /** The bytes as they were given to `finish`; empty if they are a blob. */
  readonly body: Uint8Array;
  /** The key of its blob. */
  readonly blob: string | null;
  readonly attempt: number;
}

export async function trajectory(transaction: Transaction, id: RolloutId): Promise<StoredTrajectory | undefined> {
  const sql = 'SELECT body, blob, attempt FROM trajectories JOIN rollouts USING (seq) WHERE id = ?';
  return await transaction.one<StoredTrajectory>(sql, id);
}

/** Bytes of the pages that hold no rows any more; only in SQLite. */
export async function reusableBytes(transaction: Transaction): Promise<number> {
  const { freelist_count: pages = 0 } = (await transaction.one<{ freelist_count: number }>('PRAGMA freelist_count')) ?? {};
  const { page_size: bytes = 0 } = (await transaction.one<{ page_size: number }>('PRAGMA page_size')) ?? {};
  return pages * bytes;
}

/** Read from counters, not counted. */
export async function countStates(transaction: Transaction): Promise<Record<RolloutState, number>> {
  const counts: Record<RolloutState, number> = { queued: 0, init: 0, ready: 0, run: 0, evaluate: 0, done: 0, failed: 0, cancelled: 0 };
  for (const { state, n } of await transaction.all<{ state: RolloutState; n: number }>('SELECT state, n FROM state_counts'))
    counts[state] = n;
  return counts;
}

export function parseCursor(after: string | undefined): number {
  if (after === undefined) return 0;
  if (!/^\d{1,15}$/.test(after)) throw new RolloutError('bad-request', `after: ${JSON.stringify(after)} is not the \`next\` of a page`);
  return Number(after);
}

export function toRecord(row: RecordRow): RolloutRecord {
  return {
    id: row.id,
    submission: toSubmission(row),
    digest: row.digest,
    state: row.state,
    attempt: row.attempt,
    retries: row.retries,
    losses: row.losses,
    failures: JSON.parse(row.failures),
    createdAtMs: row.created_at,
    ...definedOf({
      group: row.group_id ?? undefined,
      worker: row.worker ?? undefined,
      result: row.result === null ? undefined : JSON.parse(row.result),
      failure: row.failure === null ? undefined : JSON.parse(row.failure),
      endedAtMs: row.ended_at ?? undefined,
      requires: row.state === 'queued' ? fromStoredName(row.class_name ?? '').requires : undefined,
    }),
  };
}
