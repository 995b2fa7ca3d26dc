// What workers change: claiming rollouts and writing under their claims. A write under an outdated claim, or to a rollout that has
// ended, returns false and changes nothing.

import type { Failure, RolloutState, Submission, WorkerId } from '@millrace/protocol';
import type { Claim, ClaimedRollout } from '../../store.ts';
import type { Transaction } from '../engine/connection.ts';
import { advance, end, type RolloutRow, readHeld, rolloutColumns, type StoredEnding, sendBack } from './transitions.ts';

interface QueuedRow extends RolloutRow {
  readonly retries: number;
  readonly created_at: number;
  readonly queued_at: number;
}

export function claim(transaction: Transaction, request: { readonly worker: WorkerId; readonly limit: number }): ClaimedRollout[] {
  const { worker, limit } = request;
  const alive = transaction.one('SELECT id FROM workers WHERE id = ? AND ended_at IS NULL AND lease_until > ?', worker, transaction.nowMs);
  if (!alive) return [];
  const sql = `SELECT ${rolloutColumns}, retries, created_at, queued_at FROM rollouts INDEXED BY rollouts_state
    WHERE state = 'queued' AND not_before <= ? ORDER BY seq LIMIT ?`;
  return transaction.all<QueuedRow>(sql, transaction.nowMs, limit).map((row) => {
    const claim = { id: row.id, worker, attempt: row.attempt + 1 };
    advance(transaction, row, { state: 'init', claim });
    const { retries, created_at, queued_at } = row;
    return { ...claim, submission: readSubmission(transaction, row.seq), retries, createdAtMs: created_at, queuedAtMs: queued_at };
  });
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
  const row = transaction.one<{ body: string }>('SELECT body FROM submissions WHERE seq = ?', seq);
  return JSON.parse(row?.body ?? '');
}
