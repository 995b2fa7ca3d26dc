// Workers and their leases. A lease belongs to a worker, not to a rollout: renewing it is one row, whatever the worker holds,
// and it is lost only when somebody takes it away.

import {
  errorTable,
  type Failure,
  RolloutError,
  type RolloutId,
  type StageName,
  stages,
  type WorkerId,
  type WorkerReport,
} from '@millrace/protocol';
import type { WorkerRecord } from '../../store.ts';
import type { Session } from '../engine/session.ts';
import { appendEvent } from './events.ts';
import { settlePause } from './policy.ts';
import { end, type RolloutRow, rolloutColumns, sendBack } from './transitions.ts';

export interface Registration {
  readonly id: WorkerId;
  readonly host: string;
  readonly pid: number;
  readonly leaseMs: number;
}

export function registerWorker(session: Session, worker: Registration): void {
  const { id, host, pid, leaseMs } = worker;
  const sql = 'INSERT INTO workers (id, host, pid, started_at, lease_until) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING';
  const added = session.run(sql, id, host, pid, session.nowMs, session.nowMs + leaseMs);
  if (added === 0) throw new RolloutError('conflict', `worker id ${id} has been used: register under a new one`);
  appendEvent(session, { kind: 'worker-start', workerId: id, data: { host, pid } });
}

export function renew(
  session: Session,
  request: { readonly worker: WorkerId; readonly leaseMs: number; readonly report: WorkerReport },
): { alive: boolean; cancelled: RolloutId[] } {
  const { worker, leaseMs, report } = request;
  const sql = 'UPDATE workers SET lease_until = ?, report = ? WHERE id = ? AND ended_at IS NULL';
  if (session.run(sql, session.nowMs + leaseMs, JSON.stringify(report), worker) === 0) return { alive: false, cancelled: [] };
  const asked = session.all<{ id: RolloutId }>('SELECT id FROM rollouts WHERE worker = ? AND cancel_asked = 1 ORDER BY seq', worker);
  return { alive: true, cancelled: asked.map(({ id }) => id) };
}

export function dropWorker(session: Session, request: { readonly worker: WorkerId; readonly maxLosses: number }): void {
  const { worker, maxLosses } = request;
  if (session.one('SELECT id FROM workers WHERE id = ? AND ended_at IS NULL', worker))
    endWorker(session, worker, { maxLosses, reason: 'drop' });
}

export function expire(session: Session, request: { readonly maxLosses: number }): number {
  const sql = 'SELECT id FROM workers WHERE ended_at IS NULL AND lease_until <= ?';
  const late = session.all<{ id: WorkerId }>(sql, session.nowMs);
  return late.reduce((touched, { id }) => touched + endWorker(session, id, { ...request, reason: 'lease' }), 0);
}

interface WorkerRow {
  readonly id: WorkerId;
  readonly host: string;
  readonly pid: number;
  readonly started_at: number;
  readonly lease_until: number;
  readonly report: string | null;
}

export function workers(session: Session): WorkerRecord[] {
  const rows = session.all<WorkerRow>('SELECT * FROM workers ORDER BY started_at, id');
  return rows.map((row) => ({
    id: row.id,
    host: row.host,
    pid: row.pid,
    startedAtMs: row.started_at,
    leaseUntilMs: row.lease_until,
    ...(row.report ? { report: JSON.parse(row.report) } : {}),
  }));
}

function endWorker(session: Session, worker: WorkerId, why: { readonly maxLosses: number; readonly reason: 'drop' | 'lease' }): number {
  const { nowMs } = session;
  session.run('UPDATE workers SET ended_at = ?, lease_until = min(lease_until, ?) WHERE id = ?', nowMs, nowMs, worker);
  const held = session.all<RolloutRow>(`SELECT ${rolloutColumns} FROM rollouts WHERE worker = ? ORDER BY seq`, worker);
  for (const row of held) lose(session, row, { worker, maxLosses: why.maxLosses });
  appendEvent(session, { kind: 'worker-end', workerId: worker, data: { reason: why.reason, rollouts: held.length } });
  settlePause(session);
  return held.length;
}

function lose(session: Session, row: RolloutRow, options: { readonly worker: WorkerId; readonly maxLosses: number }): void {
  const { blame, retryable } = errorTable['worker-lost'];
  const stage = stages.find((name: StageName) => name === row.state) ?? null;
  const message = `worker ${options.worker} was lost while rollout ${row.id} was in ${row.state}`;
  const failure: Failure = { code: 'worker-lost', message, blame, retryable, stage, attempt: row.attempt };
  if (row.cancel_asked || row.losses + 1 < options.maxLosses) {
    sendBack(session, row, { kind: 'loss', failure });
  } else {
    session.run('UPDATE rollouts SET losses = losses + 1 WHERE seq = ?', row.seq);
    end(session, row, { state: 'failed', failure });
  }
}
