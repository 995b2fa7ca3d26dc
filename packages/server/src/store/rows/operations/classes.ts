// Fair claims between classes of work. Triggers keep each class's counts in the transaction that changes a rollout, so choosing
// the next rollout reads one class and one rollout, however long the queue is.

import type { BatchId, WorkerReport } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import { longestDelayMs } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import { type ClassKind, type ClassLoad, rankOf, shareOf, type WorkClass } from '../../work-class.ts';
import { countStates } from './queries.ts';
import { suspectLosses } from './transitions.ts';

/** How many delayed rollouts one claim can make claimable. */
const mostDue = 1000;

/** The `seq` of the class with this rank. */
export async function openClass(transaction: Transaction, { kind, name, weight }: WorkClass, rank: number): Promise<number> {
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

/**
 * Makes delayed rollouts claimable whose time has come. No delay is longer than `longestDelayMs`: one that ends later was set by a
 * clock that was ahead, and is over.
 */
export async function wakeDelayed(transaction: Transaction): Promise<void> {
  const { nowMs } = transaction;
  for (const [isOver, atMs] of [
    ['not_before <= ?', nowMs],
    ['not_before > ?', nowMs + longestDelayMs],
  ] as const) {
    const sql = `UPDATE rollouts SET line = CASE WHEN losses >= ? THEN 'suspect' ELSE 'due' END WHERE seq IN (SELECT seq FROM rollouts
      WHERE state = 'queued' AND line = 'delayed' AND ${isOver} ORDER BY not_before LIMIT ? FOR UPDATE SKIP LOCKED)`;
    await transaction.run(sql, suspectLosses, atMs, mostDue);
  }
}

/**
 * The class whose turn it is: of the highest rank with work, the one with the fewest active rollouts for its weight, and of equal
 * ones the one that waited longest.
 */
export async function chooseClass(transaction: Transaction): Promise<number | undefined> {
  const sql = 'SELECT seq FROM classes INDEXED BY classes_due WHERE due > 0 ORDER BY rank DESC, share, served LIMIT 1';
  const chosen = (await transaction.one<{ seq: number }>(sql))?.seq;
  if (chosen !== undefined) await transaction.noteServed(chosen);
  return chosen;
}

interface ClassRow {
  readonly kind: ClassKind;
  readonly name: string;
  readonly rank: number;
  readonly weight: number;
  readonly queued: number;
  readonly active: number;
}

/** Those with queued or active rollouts. */
async function readBusy(transaction: Transaction): Promise<ClassRow[]> {
  const sql =
    'SELECT kind, name, rank, weight, queued, active FROM classes INDEXED BY classes_busy WHERE wanted > 0 ORDER BY rank DESC, seq';
  return await transaction.all<ClassRow>(sql);
}

export async function classes(transaction: Transaction): Promise<ClassLoad[]> {
  return (await readBusy(transaction)).map(({ rank, ...row }) => ({ ...row, priority: Math.floor(rank / 2), isUrgent: rank % 2 !== 0 }));
}

/** For a batch: its own rollouts, and the slots that are its share. Runs that wait for evaluate count against everyone. */
export async function load(transaction: Transaction, batch?: BatchId): Promise<{ queued: number; active: number; slots: number }> {
  const counts = await countStates(transaction);
  const sql = 'SELECT report FROM workers WHERE ended_at IS NULL AND lease_until > ? AND report IS NOT NULL';
  const reports = (await transaction.all<{ report: string }>(sql, transaction.nowMs)).map(({ report }): WorkerReport => JSON.parse(report));
  const countSlots = (stage: 'run' | 'evaluate') => reports.reduce((total, { stages }) => total + stages[stage].slots, 0);
  const waiting = Math.max(0, counts.evaluate - countSlots('evaluate'));
  const slots = countSlots('run');
  if (batch === undefined) return { queued: counts.queued, active: counts.init + counts.ready + counts.run + waiting, slots };
  const busy = await readBusy(transaction);
  const own = busy.filter(({ kind, name }) => kind === 'batch' && name === batch);
  const others = busy.filter((row) => !own.includes(row)).map((row) => ({ ...row, wanted: row.queued + row.active }));
  const total = (column: 'queued' | 'active') => own.reduce((sum, row) => sum + row[column], 0);
  return {
    queued: total('queued'),
    active: total('active') + waiting,
    slots: shareOf(await readShare(transaction, batch), others, slots),
  };
}

async function readShare(transaction: Transaction, batch: BatchId): Promise<{ rank: number; weight: number }> {
  const row = await transaction.one<{ plan: string }>('SELECT plan FROM batches WHERE id = ?', batch);
  const { priority, weight = 1 }: { priority?: number; weight?: number } = JSON.parse(row?.plan ?? '{}');
  return { rank: rankOf(definedOf({ priority })), weight };
}
