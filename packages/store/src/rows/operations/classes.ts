// Fair claims between classes of work. Each class's counts are kept in the transaction that changes a rollout, so choosing the next
// rollout reads one class and one rollout, however long the queue is.

import type { BatchId, MachineLabels, WorkerReport } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import type { BatchPlan } from '../../batch-store.ts';
import { longestDelayMs } from '../../claim.ts';
import type { Transaction } from '../../transaction.ts';
import {
  type ClassKind,
  type ClassLoad,
  fromStoredName,
  hasLabels,
  labelsOf,
  rankOf,
  shareOf,
  toStoredName,
  type WorkClass,
} from '../../work-class.ts';
import { countStates } from './queries.ts';
import { type RolloutRow, suspectLosses } from './transitions.ts';

/** How many delayed rollouts one claim can make claimable. */
const mostDue = 1000;

/** The `seq` of the class with this rank. */
export async function openClass(transaction: Transaction, workClass: WorkClass, rank: number): Promise<number> {
  const { kind, weight } = workClass;
  const name = toStoredName(workClass);
  const known = await transaction.one<{ seq: number; weight: number }>(
    'SELECT seq, weight FROM classes WHERE kind = ? AND name = ? AND rank = ?',
    kind,
    name,
    rank,
  );
  if (known?.weight === weight) return known.seq;
  const sql = `INSERT INTO classes (kind, name, rank, weight) VALUES (?, ?, ?, ?)
    ON CONFLICT (kind, name, rank) DO UPDATE SET weight = excluded.weight RETURNING seq`;
  return (await transaction.one<{ seq: number }>(sql, kind, name, rank, weight))?.seq ?? 0;
}

/** Removes the classes of a batch or an evaluation whose rollouts have ended, with and without requirements. */
export async function deleteClasses(transaction: Transaction, kind: ClassKind, name: string): Promise<void> {
  const sql = 'DELETE FROM classes WHERE kind = ?1 AND wanted = 0 AND (name = ?2 OR substr(name, 1, ?3) = ?4)';
  const start = `${name}\n`;
  await transaction.run(sql, kind, name, start.length, start);
}

/** Moves a rollout to the class with the same name that requires these labels too. Returns the `seq` of that class. */
export async function requireMore(
  transaction: Transaction,
  rollout: Pick<RolloutRow, 'seq' | 'class'>,
  more: MachineLabels,
): Promise<number> {
  const sql = 'SELECT kind, name, rank, weight FROM classes WHERE seq = ?';
  const row = await transaction.one<Pick<ClassRow, 'kind' | 'name' | 'rank' | 'weight'>>(sql, rollout.class);
  if (!row) return rollout.class;
  const { name, requires } = fromStoredName(row.name);
  const { kind, weight, rank } = row;
  const own = await openClass(transaction, { kind, name, weight, requires: { ...requires, ...more } }, rank);
  await transaction.run('UPDATE rollouts SET class = ? WHERE seq = ?', own, rollout.seq);
  return own;
}

/**
 * Makes delayed rollouts claimable whose time has come. No delay is longer than `longestDelayMs`: one that ends later was set by a
 * clock that was ahead, and is over.
 */
export async function wakeDelayed(transaction: Transaction): Promise<void> {
  const { nowMs } = transaction;
  const latestMs = nowMs + longestDelayMs;
  // Most claims find none. An update that changes nothing would cost SQLite more than the rest of a claim.
  const { first, last } = (await transaction.one<{ first: number | null; last: number | null }>(delaysSql)) ?? { first: null, last: null };
  if (first !== null && first <= nowMs) await wake(transaction, 'not_before <= ?', nowMs);
  if (last !== null && last > latestMs) await wake(transaction, 'not_before > ?', latestMs);
}

const delayed = "rollouts INDEXED BY rollouts_delayed WHERE state = 'queued' AND line = 'delayed'";
const delaysSql = `SELECT (SELECT not_before FROM ${delayed} ORDER BY not_before LIMIT 1) AS first,
  (SELECT not_before FROM ${delayed} ORDER BY not_before DESC LIMIT 1) AS last`;

async function wake(transaction: Transaction, isOver: string, atMs: number): Promise<void> {
  const sql = `UPDATE rollouts SET line = CASE WHEN losses >= ? THEN 'suspect' ELSE 'due' END
    WHERE seq IN (SELECT seq FROM ${delayed} AND ${isOver} ORDER BY not_before LIMIT ? FOR UPDATE SKIP LOCKED)`;
  await transaction.run(sql, suspectLosses, atMs, mostDue);
}

/** More classes than any claim looks at. */
const mostClasses = 1_000;

/**
 * The class whose turn it is: of the highest rank with work that a machine with these labels can do, the one with the fewest active
 * rollouts for its weight, and of equal ones the one that waited longest.
 */
export async function chooseClass(transaction: Transaction, labels: MachineLabels): Promise<number | undefined> {
  const sql = 'SELECT seq, name FROM classes INDEXED BY classes_due WHERE due > 0 ORDER BY rank DESC, share, served LIMIT ?';
  const read = (limit: number) => transaction.all<{ seq: number; name: string }>(sql, limit);
  const canTake = ({ name }: { readonly name: string }) => hasLabels(labels, fromStoredName(name).requires);
  const [first] = await read(1);
  return (!first || canTake(first) ? first : (await read(mostClasses)).find(canTake))?.seq;
}

interface ClassRow {
  readonly kind: ClassKind;
  readonly name: string;
  readonly rank: number;
  readonly weight: number;
  readonly queued: number;
  readonly active: number;
}

/** The table or view that has the counts as they are now, and which of its rows have queued or active rollouts. */
const busyClasses = 'classes INDEXED BY classes_busy WHERE wanted > 0';

/** Those with queued or active rollouts. */
async function readBusy(transaction: Transaction, busy: string): Promise<(ClassRow & Pick<WorkClass, 'requires'>)[]> {
  const sql = `SELECT kind, name, rank, weight, queued, active FROM ${busy} ORDER BY rank DESC, seq`;
  return (await transaction.all<ClassRow>(sql)).map((row) => ({ ...row, ...fromStoredName(row.name) }));
}

export async function classes(transaction: Transaction, _: undefined, busy = busyClasses): Promise<ClassLoad[]> {
  return (await readBusy(transaction, busy)).map(({ rank, ...row }) => ({
    ...row,
    priority: Math.floor(rank / 2),
    isUrgent: rank % 2 !== 0,
  }));
}

/** For a batch: its own rollouts, and the slots that are its share. Runs that wait for evaluate count against everyone. */
export async function load(
  transaction: Transaction,
  batch: BatchId | undefined,
  busyOnes = busyClasses,
): Promise<{ queued: number; active: number; slots: number }> {
  const counts = await countStates(transaction);
  const sql = 'SELECT report FROM workers WHERE ended_at IS NULL AND lease_until > ? AND report IS NOT NULL';
  const reports = (await transaction.all<{ report: string }>(sql, transaction.nowMs)).map(({ report }): WorkerReport => JSON.parse(report));
  const { rank, weight, requires } = await readShare(transaction, batch);
  const able = reports.filter(({ machine }) => hasLabels(machine ? labelsOf(machine) : {}, requires));
  const countSlots = (some: readonly WorkerReport[], stage: 'run' | 'evaluate') =>
    some.reduce((total, { stages }) => total + stages[stage].slots, 0);
  const waiting = Math.max(0, counts.evaluate - countSlots(reports, 'evaluate'));
  const slots = countSlots(able, 'run');
  if (batch === undefined) return { queued: counts.queued, active: counts.init + counts.ready + counts.run + waiting, slots };
  const busy = await readBusy(transaction, busyOnes);
  const own = busy.filter(({ kind, name }) => kind === 'batch' && name === batch);
  const others = busy.filter((row) => !own.includes(row)).map((row) => ({ ...row, wanted: row.queued + row.active }));
  const total = (column: 'queued' | 'active') => own.reduce((sum, row) => sum + row[column], 0);
  return {
    queued: total('queued'),
    active: total('active') + waiting,
    slots: shareOf({ rank, weight }, others, slots),
  };
}

async function readShare(
  transaction: Transaction,
  batch: BatchId | undefined,
): Promise<{ rank: number; weight: number; requires?: MachineLabels | undefined }> {
  if (batch === undefined) return { rank: 0, weight: 1 };
  const row = await transaction.one<{ plan: string }>('SELECT plan FROM batches WHERE id = ?', batch);
  const { priority, weight = 1, requires }: Pick<BatchPlan, 'priority' | 'weight' | 'requires'> = JSON.parse(row?.plan ?? '{}');
  return { rank: rankOf(definedOf({ priority })), weight, requires };
}
