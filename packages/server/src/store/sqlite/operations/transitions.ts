// The only statements that change a rollout's state after it was made. Each looks its move up in the table of legal moves
// and writes the event that tells of it, in the caller's transaction.

import {
  canMove,
  type Failure,
  type GroupId,
  RolloutError,
  type RolloutId,
  type RolloutResult,
  type RolloutState,
} from '@millrace/protocol';
import type { Claim, Ending } from '../../store.ts';
import type { Session } from '../engine/session.ts';
import { appendEvent } from './events.ts';

/** What a transition must know of the rollout before it. */
export interface RolloutRow {
  readonly seq: number;
  readonly id: RolloutId;
  readonly scenario: string;
  readonly group_id: GroupId | null;
  readonly state: RolloutState;
  readonly attempt: number;
  readonly losses: number;
  readonly worker: Claim['worker'] | null;
  readonly cancel_asked: number;
  readonly failures: string;
}

/** An ending whose trajectory is in its stored form. */
export interface StoredEnding {
  readonly state: Ending['state'];
  readonly result?: RolloutResult;
  readonly failure?: Failure;
  readonly trajectory?: Uint8Array;
}

export const rolloutColumns = 'seq, id, scenario, group_id, state, attempt, losses, worker, cancel_asked, failures';

/** The fence: there is a row only while this claim is the one that holds the rollout. */
export function readHeld(session: Session, claim: Claim): RolloutRow | undefined {
  const sql = `SELECT ${rolloutColumns} FROM rollouts WHERE id = ? AND worker = ? AND attempt = ?`;
  return session.one<RolloutRow>(sql, claim.id, claim.worker, claim.attempt);
}

/** Into the next stage, under `claim`. */
export function advance(session: Session, row: RolloutRow, to: { readonly state: RolloutState; readonly claim: Claim }): void {
  const { state, claim } = to;
  checkMove(row, state);
  session.run('UPDATE rollouts SET state = ?, worker = ?, attempt = ? WHERE seq = ?', state, claim.worker, claim.attempt, row.seq);
  appendEvent(session, {
    kind: 'rollout-move',
    rolloutId: row.id,
    ...groupOf(row),
    workerId: claim.worker,
    data: { from: row.state, to: state, attempt: claim.attempt, worker: claim.worker, scenario: row.scenario },
  });
}

export type BackReason =
  | { readonly kind: 'retry'; readonly failure: Failure; readonly delayMs: number }
  | { readonly kind: 'loss'; readonly failure: Failure }
  | { readonly kind: 'release' };

/** Back to the queue with nobody holding it; a rollout that was asked to cancel ends instead. */
export function sendBack(session: Session, row: RolloutRow, reason: BackReason): void {
  checkMove(row, 'queued');
  if (reason.kind !== 'release') keepFailure(session, row, reason);
  if (row.cancel_asked) {
    end(session, row, { state: 'cancelled' });
    return;
  }
  const notBefore = session.nowMs + (reason.kind === 'retry' ? reason.delayMs : 0);
  const sql = "UPDATE rollouts SET state = 'queued', worker = NULL, backend = NULL, queued_at = ?, not_before = ? WHERE seq = ?";
  session.run(sql, session.nowMs, notBefore, row.seq);
  appendQueued(session, row, reason.kind);
}

export function appendQueued(session: Session, row: Pick<RolloutRow, 'id' | 'group_id' | 'attempt' | 'scenario'>, reason: string): void {
  const data = { reason, attempt: row.attempt, scenario: row.scenario };
  appendEvent(session, { kind: 'rollout-queue', rolloutId: row.id, ...groupOf(row), data });
}

export function end(session: Session, row: RolloutRow, ending: StoredEnding): void {
  checkMove(row, ending.state);
  session.run(
    'UPDATE rollouts SET state = ?, worker = NULL, ended_at = ?, result = ?, failure = ? WHERE seq = ?',
    ending.state,
    session.nowMs,
    ending.result ? JSON.stringify(ending.result) : null,
    ending.failure ? JSON.stringify(ending.failure) : null,
    row.seq,
  );
  if (ending.trajectory) session.run('INSERT INTO trajectories (seq, body) VALUES (?, ?)', row.seq, ending.trajectory);
  appendEnded(session, row, ending);
}

export function appendEnded(
  session: Session,
  row: Pick<RolloutRow, 'id' | 'group_id' | 'attempt' | 'scenario' | 'worker'>,
  ending: StoredEnding,
): void {
  const { state, result, failure } = ending;
  appendEvent(session, {
    kind: 'rollout-end',
    rolloutId: row.id,
    ...groupOf(row),
    ...(row.worker ? { workerId: row.worker } : {}),
    data: {
      state,
      reward: result?.reward ?? null,
      stop_reason: result?.stop_reason ?? null,
      code: failure?.code ?? null,
      blame: failure?.blame ?? null,
      scenario: row.scenario,
      attempt: row.attempt,
      ...(result ? { turns: result.turns, tokens: result.tokens, timings: result.timings } : {}),
    },
  });
}

function keepFailure(session: Session, row: RolloutRow, reason: { readonly kind: 'retry' | 'loss'; readonly failure: Failure }): void {
  const counted = reason.kind === 'retry' ? 'retries = retries + 1' : 'losses = losses + 1';
  const failures: Failure[] = [...JSON.parse(row.failures), reason.failure];
  session.run(`UPDATE rollouts SET ${counted}, failures = ? WHERE seq = ?`, JSON.stringify(failures), row.seq);
}

function checkMove(row: RolloutRow, to: RolloutState): void {
  if (canMove(row.state, to)) return;
  throw new RolloutError('internal', `rollout ${row.id} cannot move from ${row.state} to ${to}`);
}

function groupOf(row: Pick<RolloutRow, 'group_id'>): { group?: GroupId } {
  return row.group_id ? { group: row.group_id } : {};
}
