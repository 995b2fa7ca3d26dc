// Which backends are broken, for one machine or for all. A machine that cannot reach a backend breaks it for itself; it is broken for all
// once more than half of the machines that use it say so.

import type { BackendId } from '@millrace/protocol';
import { firstProbeMs, type HealthReport, longestProbeMs, probeTimeoutMs } from '../../../backends/placements.ts';
import type { Transaction } from '../../../transaction.ts';

interface HealthRow {
  readonly broken_at: number | null;
  readonly probes: number;
  readonly probe_at: number;
}

/** A backend as a machine sees it: broken for all, or for itself. */
interface Sight {
  readonly isForAll: boolean;
  readonly since: number;
  readonly probes: number;
  readonly probeAt: number;
}

interface BackendSeen {
  readonly id: BackendId;
  readonly machine?: string | undefined;
}

/** Locks the backend. Absent if it is unknown; null if it works for this machine. */
async function readSight(transaction: Transaction, { id, machine = '' }: BackendSeen): Promise<Sight | null | undefined> {
  const row = await transaction.one<HealthRow>('SELECT broken_at, probes, probe_at FROM backends WHERE id = ? FOR UPDATE', id);
  if (!row) return undefined;
  if (row.broken_at !== null) return { isForAll: true, since: row.broken_at, probes: row.probes, probeAt: row.probe_at };
  const sql = 'SELECT since, probes, probe_at FROM backend_faults WHERE backend = ? AND machine = ?';
  const fault = await transaction.one<{ since: number; probes: number; probe_at: number }>(sql, id, machine);
  return fault ? { isForAll: false, since: fault.since, probes: fault.probes, probeAt: fault.probe_at } : null;
}

export async function breakBackend(transaction: Transaction, request: HealthReport & { readonly id: BackendId }): Promise<void> {
  const { id, error, isProbe = false, machine } = request;
  const sight = await readSight(transaction, request);
  if (sight === undefined) return;
  if (sight && isProbe) return await postpone(transaction, request, sight);
  if (sight || isProbe) return;
  const { nowMs } = transaction;
  const isForAll = machine === undefined || (await isMajority(transaction, id, machine));
  if (machine !== undefined) {
    const sql = 'INSERT INTO backend_faults (backend, machine, since, probes, probe_at, error) VALUES (?, ?, ?, 1, ?, ?)';
    await transaction.run(sql, id, machine, nowMs, nowMs + firstProbeMs, error);
  }
  if (isForAll) {
    const sql = 'UPDATE backends SET broken_at = ?, probes = 1, probe_at = ? WHERE id = ?';
    await transaction.run(sql, nowMs, nowMs + firstProbeMs, id);
  }
  await transaction.run('UPDATE backends SET error = ?, error_at = ? WHERE id = ?', error, nowMs, id);
  await transaction.appendEvent({ kind: 'backend-break', backendId: id, data: { error, ...(!isForAll && { machine }) } });
}

/** Whether this machine and those that broke it before are more than half of the machines with rollouts on it. */
async function isMajority(transaction: Transaction, id: BackendId, machine: string): Promise<boolean> {
  const gone = 'NOT EXISTS (SELECT 1 FROM workers WHERE host = machine AND ended_at IS NULL)';
  await transaction.run(`DELETE FROM backend_faults WHERE backend = ? AND ${gone}`, id);
  const faults = await transaction.all<{ machine: string }>('SELECT machine FROM backend_faults WHERE backend = ?', id);
  const sql = `SELECT DISTINCT host AS machine FROM rollouts JOIN workers ON workers.id = rollouts.worker
    WHERE rollouts.state = 'run' AND rollouts.backend = ?`;
  const users = await transaction.all<{ machine: string }>(sql, id);
  const broken = new Set([machine, ...faults.map((fault) => fault.machine)]);
  const voters = new Set([...broken, ...users.map((user) => user.machine)]);
  return 2 * broken.size > voters.size;
}

/** After a probe that failed, the wait before the next doubles. */
async function postpone(transaction: Transaction, { id, error, machine = '' }: HealthReport & BackendSeen, sight: Sight): Promise<void> {
  const { nowMs } = transaction;
  const probeAt = nowMs + Math.min(firstProbeMs * 2 ** sight.probes, longestProbeMs);
  await writeSchedule(transaction, { id, machine }, { ...sight, probes: sight.probes + 1, probeAt });
  await transaction.run('UPDATE backends SET error = ?, error_at = ? WHERE id = ?', error, nowMs, id);
}

async function writeSchedule(
  transaction: Transaction,
  { id, machine = '' }: BackendSeen,
  { isForAll, probes, probeAt }: Sight,
): Promise<void> {
  if (isForAll) await transaction.run('UPDATE backends SET probes = ?, probe_at = ? WHERE id = ?', probes, probeAt, id);
  else
    await transaction.run(
      'UPDATE backend_faults SET probes = ?, probe_at = ? WHERE backend = ? AND machine = ?',
      probes,
      probeAt,
      id,
      machine,
    );
}

/** What was broken for all works for all: a machine that still cannot reach it breaks it for itself again. */
export async function recoverBackend(transaction: Transaction, place: BackendSeen): Promise<void> {
  const { id, machine = '' } = place;
  const sight = await readSight(transaction, place);
  if (!sight) return;
  const { isForAll, since } = sight;
  if (isForAll) {
    await transaction.run('UPDATE backends SET broken_at = NULL, probes = 0, probe_at = 0 WHERE id = ?', id);
    await transaction.run('DELETE FROM backend_faults WHERE backend = ?', id);
  } else await transaction.run('DELETE FROM backend_faults WHERE backend = ? AND machine = ?', id, machine);
  const data = { broken_ms: transaction.nowMs - since, ...(!isForAll && { machine }) };
  await transaction.appendEvent({ kind: 'backend-recovered', backendId: id, data });
}

/** Postpones the next probe for as long as this one may take, so that only one worker, or one of each machine, probes at a time. */
export async function takeProbe(transaction: Transaction, place: BackendSeen): Promise<number | undefined> {
  const sight = await readSight(transaction, place);
  if (!sight) return undefined;
  const waitMs = sight.probeAt - transaction.nowMs;
  // A probe that is further away than any can be was planned by a clock that was ahead.
  if (waitMs > 0 && waitMs <= Math.max(longestProbeMs, probeTimeoutMs + firstProbeMs)) return waitMs;
  await writeSchedule(transaction, place, { ...sight, probeAt: transaction.nowMs + probeTimeoutMs + firstProbeMs });
  return 0;
}
