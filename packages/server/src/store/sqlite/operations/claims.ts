// What workers change: claiming rollouts and writing under their claims. A write under an outdated claim, or to a rollout that has
// ended, returns false and changes nothing.

import type { Failure, RolloutState, Submission, WorkerId } from '@millrace/protocol';
import type { Claim, ClaimedRollout } from '../../store.ts';
import type { Transaction } from '../engine/connection.ts';
import { groupTaskColumn, toSubmission } from './batch/group-task.ts';
import { chooseClass, wakeDelayed } from './classes.ts';
import { advance, end, type RolloutRow, readHeld, rolloutColumns, type StoredEnding, sendBack, suspectLosses } from './transitions.ts';

interface QueuedRow extends RolloutRow {
  readonly retries: number;
  readonly created_at: number;
  readonly queued_at: number;
}

export function claim(transaction: Transaction, request: { readonly worker: WorkerId; readonly limit: number }): ClaimedRollout[] {
  const { worker, limit } = request;
  const sql = 'SELECT quarantine FROM workers WHERE id = ? AND ended_at IS NULL AND lease_until > ?';
  const row = transaction.one<{ quarantine: number }>(sql, worker, transaction.nowMs);
  if (!row) return [];
  wakeDelayed(transaction);
  const suspects = chooseSuspects(transaction, { worker, limit, isQuarantined: row.quarantine === 1 });
  if (suspects) return suspects.map((suspect) => take(transaction, suspect, worker));
  const claimed: ClaimedRollout[] = [];
  while (claimed.length < limit) {
    const next = chooseNext(transaction);
    if (!next) break;
    claimed.push(take(transaction, next, worker));
  }
  return claimed;
}

const queuedColumns = `${rolloutColumns}, retries, created_at, queued_at`;

/** The oldest rollout of the class whose turn it is. */
function chooseNext(transaction: Transaction): QueuedRow | undefined {
  const chosen = chooseClass(transaction);
  if (chosen === undefined) return undefined;
  const sql = `SELECT ${queuedColumns} FROM rollouts INDEXED BY rollouts_due
    WHERE state = 'queued' AND line = 'due' AND class = ? ORDER BY seq LIMIT 1`;
  return transaction.one<QueuedRow>(sql, chosen);
}

/** How many rollouts that lost two workers may share one. A rollout that lost more runs alone. */
const cohortSize = 8;

/**
 * What a worker in quarantine takes; absent for any other worker. While there is other work, one live worker is in quarantine: it
 * finishes what it holds and then takes only suspects, so that a rollout that crashes its worker harms no other.
 */
function chooseSuspects(
  transaction: Transaction,
  { worker, limit, isQuarantined }: { readonly worker: WorkerId; readonly limit: number; readonly isQuarantined: boolean },
): QueuedRow[] | undefined {
  const [first] = readSuspects(transaction, 1);
  if (!first && !isQuarantined) return undefined;
  const held = transaction.all<{ losses: number }>('SELECT losses FROM rollouts WHERE worker = ?', worker);
  const holdsSuspect = held.some(({ losses }) => losses >= suspectLosses);
  if (!first && !holdsSuspect) {
    transaction.run('UPDATE workers SET quarantine = 0 WHERE id = ?', worker);
    return undefined;
  }
  if (!isQuarantined && !enterQuarantine(transaction, worker)) return undefined;
  if (!first || (held.length > 0 && !holdsSuspect)) return [];
  const isAlone = [first, ...held].some(({ losses }) => losses > suspectLosses);
  const room = Math.min(limit, (isAlone ? 1 : cohortSize) - held.length);
  return readSuspects(transaction, Math.max(0, room)).filter(({ losses }) => isAlone || losses === suspectLosses);
}

function readSuspects(transaction: Transaction, limit: number): QueuedRow[] {
  const sql = `SELECT ${queuedColumns} FROM rollouts INDEXED BY rollouts_suspect
    WHERE state = 'queued' AND line = 'suspect' ORDER BY losses, seq LIMIT ?`;
  return transaction.all<QueuedRow>(sql, limit);
}

/** False when another live worker is in quarantine and there is other work to do. */
function enterQuarantine(transaction: Transaction, worker: WorkerId): boolean {
  const other = 'SELECT 1 FROM workers WHERE quarantine = 1 AND id <> ? AND ended_at IS NULL AND lease_until > ?';
  if (transaction.one('SELECT 1 FROM classes WHERE due > 0') && transaction.one(other, worker, transaction.nowMs)) return false;
  transaction.run('UPDATE workers SET quarantine = 1 WHERE id = ?', worker);
  return true;
}

function take(transaction: Transaction, row: QueuedRow, worker: WorkerId): ClaimedRollout {
  const claim = { id: row.id, worker, attempt: row.attempt + 1 };
  advance(transaction, row, { state: 'init', claim });
  const { retries, created_at, queued_at } = row;
  return { ...claim, submission: readSubmission(transaction, row.seq), retries, createdAtMs: created_at, queuedAtMs: queued_at };
}

export function move(transaction: Transaction, request: { readonly claim: Claim; readonly to: RolloutState }): boolean {
  const row = readHeld(transaction, request.claim);
  if (row) advance(transaction, row, { state: request.to, claim: request.claim });
  return row !== undefined;
}

export function finish(transaction: Transaction, request: { readonly claim: Claim; readonly ending: StoredEnding }): boolean {
  const row = readHeld(transaction, request.claim);
  if (row) end(transaction, row, request.ending);
  return row !== undefined;
}

export function retry(
  transaction: Transaction,
  request: { readonly claim: Claim; readonly failure: Failure; readonly delayMs: number },
): boolean {
  const { claim, failure, delayMs } = request;
  const row = readHeld(transaction, claim);
  if (row) sendBack(transaction, row, { kind: 'retry', failure, delayMs });
  return row !== undefined;
}

export function release(transaction: Transaction, claim: Claim): boolean {
  const row = readHeld(transaction, claim);
  if (row) sendBack(transaction, row, { kind: 'release' });
  return row !== undefined;
}

function readSubmission(transaction: Transaction, seq: number): Submission {
  const sql = `SELECT body, ${groupTaskColumn} FROM submissions JOIN rollouts USING (seq) WHERE seq = ?`;
  const row = transaction.one<{ body: string; group_task: string | null }>(sql, seq);
  return toSubmission(row ?? { body: '', group_task: null });
}
