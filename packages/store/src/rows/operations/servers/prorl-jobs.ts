// Jobs of ProRL Agent's clients: which rollout answers which call, and which server has the call. A job whose server is gone waits for
// its caller to ask again.

import type { RolloutId } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import type { OpenProrlJob, ProrlJob, ProrlState, ServerStore } from '../../../servers/server-store.ts';
import type { Transaction } from '../../../transaction.ts';

/** How long a job whose server is gone is kept. */
const keptMs = 3_600_000;

export async function prorlState(transaction: Transaction): Promise<ProrlState> {
  const row = await transaction.one<{ running: number; cleared_at: number | null }>('SELECT running, cleared_at FROM prorl');
  const clearedAt = row?.cleared_at ?? undefined;
  return definedOf({ isRunning: row?.running === 1, clearedAgoMs: clearedAt && transaction.nowMs - clearedAt });
}

export async function noteProrl(transaction: Transaction, change: Parameters<ServerStore['noteProrl']>[0]): Promise<void> {
  if (change === 'clear') await transaction.run('UPDATE prorl SET cleared_at = ?', transaction.nowMs);
  else await transaction.run('UPDATE prorl SET running = ?', Number(change === 'start'));
}

export async function openProrlJob(transaction: Transaction, job: ProrlJob): Promise<boolean> {
  const { rollout, name, digest, server, leaseMs } = job;
  await transaction.run('DELETE FROM prorl_jobs WHERE until < ?', transaction.nowMs - keptMs);
  const sql = 'INSERT INTO prorl_jobs (rollout, name, digest, server, until) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING';
  return (await transaction.run(sql, rollout, name ?? null, digest, server, transaction.nowMs + leaseMs)) > 0;
}

export async function adoptProrlJob(
  transaction: Transaction,
  request: Parameters<ServerStore['adoptProrlJob']>[0],
): Promise<RolloutId | undefined> {
  const { name, digest, server, leaseMs, maxAgeMs } = request;
  const { nowMs } = transaction;
  const found = `SELECT rollout FROM prorl_jobs WHERE name = ? AND digest = ? AND until <= ? AND until > ?
    ORDER BY until, rollout LIMIT 1 FOR UPDATE SKIP LOCKED`;
  const job = await transaction.one<{ rollout: RolloutId }>(found, name, digest, nowMs, nowMs - maxAgeMs);
  if (job) await transaction.run('UPDATE prorl_jobs SET server = ?, until = ? WHERE rollout = ?', server, nowMs + leaseMs, job.rollout);
  return job?.rollout;
}

export async function renewProrlJobs(transaction: Transaction, request: Pick<ProrlJob, 'server' | 'leaseMs'>): Promise<void> {
  await transaction.run('UPDATE prorl_jobs SET until = ? WHERE server = ?', transaction.nowMs + request.leaseMs, request.server);
}

export async function closeProrlJob(transaction: Transaction, rollout: RolloutId): Promise<void> {
  await transaction.run('DELETE FROM prorl_jobs WHERE rollout = ?', rollout);
}

interface JobRow extends Pick<ProrlJob, 'rollout' | 'digest' | 'server'> {
  readonly name: string | null;
  readonly until: number;
}

export async function prorlJobs(transaction: Transaction, name?: string): Promise<OpenProrlJob[]> {
  const rows = await transaction.all<JobRow>('SELECT rollout, name, digest, server, until FROM prorl_jobs ORDER BY rollout');
  return rows
    .filter((row) => name === undefined || row.name === name)
    .map(({ rollout, digest, server, until }) => ({ rollout, digest, server, untilMs: until, isLive: until > transaction.nowMs }));
}
