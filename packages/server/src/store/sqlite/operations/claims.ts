// What a worker changes: claiming rollouts and writing under its claims. A write whose claim has passed to another, or whose
// rollout is over, answers false and changes nothing.

import type { Failure, RolloutState, Submission, WorkerId } from '@millrace/protocol';
import type { Claim, ClaimedRollout } from '../../store.ts';
import type { Session } from '../engine/session.ts';
import { advance, end, type RolloutRow, readHeld, rolloutColumns, type StoredEnding, sendBack } from './transitions.ts';

interface QueuedRow extends RolloutRow {
  readonly retries: number;
  readonly created_at: number;
  readonly queued_at: number;
}

export function claim(session: Session, request: { readonly worker: WorkerId; readonly limit: number }): ClaimedRollout[] {
  const { worker, limit } = request;
  const alive = session.one('SELECT id FROM workers WHERE id = ? AND ended_at IS NULL AND lease_until > ?', worker, session.nowMs);
  if (!alive) return [];
  const sql = `SELECT ${rolloutColumns}, retries, created_at, queued_at FROM rollouts INDEXED BY rollouts_state
    WHERE state = 'queued' AND not_before <= ? ORDER BY seq LIMIT ?`;
  return session.all<QueuedRow>(sql, session.nowMs, limit).map((row) => {
    const claim = { id: row.id, worker, attempt: row.attempt + 1 };
    advance(session, row, { state: 'init', claim });
    const { retries, created_at, queued_at } = row;
    return { ...claim, submission: readSubmission(session, row.seq), retries, createdAtMs: created_at, queuedAtMs: queued_at };
  });
}

export function move(session: Session, request: { readonly claim: Claim; readonly to: RolloutState }): boolean {
  const row = readHeld(session, request.claim);
  if (row) advance(session, row, { state: request.to, claim: request.claim });
  return row !== undefined;
}

export function finish(session: Session, request: { readonly claim: Claim; readonly ending: StoredEnding }): boolean {
  const row = readHeld(session, request.claim);
  if (row) end(session, row, request.ending);
  return row !== undefined;
}

export function retry(session: Session, request: { readonly claim: Claim; readonly failure: Failure; readonly delayMs: number }): boolean {
  const { claim, failure, delayMs } = request;
  const row = readHeld(session, claim);
  if (row) sendBack(session, row, { kind: 'retry', failure, delayMs });
  return row !== undefined;
}

export function release(session: Session, claim: Claim): boolean {
  const row = readHeld(session, claim);
  if (row) sendBack(session, row, { kind: 'release' });
  return row !== undefined;
}

function readSubmission(session: Session, seq: number): Submission {
  const row = session.one<{ body: string }>('SELECT body FROM submissions WHERE seq = ?', seq);
  return JSON.parse(row?.body ?? '');
}
