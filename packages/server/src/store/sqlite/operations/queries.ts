// What is asked about rollouts: one, a page of them, a trajectory, and how many are in each state.

import type { SQLInputValue } from 'node:sqlite';
import { type GroupId, RolloutError, type RolloutId, type RolloutState, rolloutStates, type WorkerId } from '@millrace/protocol';
import type { RolloutRecord } from '../../rollout-record.ts';
import type { ListFilter } from '../../store.ts';
import type { Session } from '../engine/session.ts';

export interface RecordRow {
  readonly seq: number;
  readonly id: RolloutId;
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
}

export const records = 'SELECT rollouts.*, submissions.body FROM rollouts JOIN submissions USING (seq)';

export function get(session: Session, id: RolloutId): RolloutRecord | undefined {
  const row = session.one<RecordRow>(`${records} WHERE id = ?`, id);
  return row && toRecord(row);
}

export function list(session: Session, filter: ListFilter): { rollouts: RolloutRecord[]; next?: string } {
  const { state, group, scenario, limit } = filter;
  const wanted: [string, SQLInputValue | undefined][] = [
    ['rollouts.seq > ?', parseCursor(filter.after)],
    ['state = ?', state],
    ['group_id = ?', group],
    ['scenario = ?', scenario],
  ];
  const given = wanted.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  const where = given.map(({ sql }) => sql).join(' AND ');
  const values = given.map(({ value }) => value);
  const rows = session.all<RecordRow>(`${records} WHERE ${where} ORDER BY rollouts.seq LIMIT ?`, ...values, limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { rollouts: page.map(toRecord), ...(last && rows.length > limit ? { next: String(last.seq) } : {}) };
}

/** The bytes as they were given to `finish`. */
export function trajectory(session: Session, id: RolloutId): Uint8Array | undefined {
  const sql = 'SELECT body FROM trajectories JOIN rollouts USING (seq) WHERE id = ?';
  return session.one<{ body: Uint8Array }>(sql, id)?.body;
}

export function counts(session: Session): Record<RolloutState, number> {
  const zero = { queued: 0, init: 0, ready: 0, run: 0, evaluate: 0, done: 0, failed: 0, cancelled: 0 };
  const found: Record<RolloutState, number> = { ...zero };
  const sql = 'SELECT count(*) AS n FROM rollouts WHERE state = ?';
  for (const state of rolloutStates) found[state] = session.one<{ n: number }>(sql, state)?.n ?? 0;
  return found;
}

export function parseCursor(after: string | undefined): number {
  if (after === undefined) return 0;
  if (!/^\d{1,15}$/.test(after)) throw new RolloutError('bad-request', `after: ${JSON.stringify(after)} is not the next of a page`);
  return Number(after);
}

export function toRecord(row: RecordRow): RolloutRecord {
  return {
    id: row.id,
    submission: JSON.parse(row.body),
    ...(row.group_id ? { group: row.group_id } : {}),
    state: row.state,
    attempt: row.attempt,
    retries: row.retries,
    losses: row.losses,
    ...(row.worker ? { worker: row.worker } : {}),
    ...(row.result ? { result: JSON.parse(row.result) } : {}),
    ...(row.failure ? { failure: JSON.parse(row.failure) } : {}),
    failures: JSON.parse(row.failures),
    createdAtMs: row.created_at,
    ...(row.ended_at === null ? {} : { endedAtMs: row.ended_at }),
  };
}
