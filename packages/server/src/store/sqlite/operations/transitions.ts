// The only statements that change a rollout's state after it was created. Each checks the table of legal moves and writes its
// event, in the caller's transaction.

import {
  canMove,
  definedOf,
  type Failure,
  type GroupId,
  RolloutError,
  type RolloutId,
  type RolloutResult,
  type RolloutState,
} from '@millrace/protocol';
import type { Claim, Ending } from '../../store.ts';
import type { Transaction } from '../engine/connection.ts';
import { addWaste } from './batch/waste.ts';
import { countSample, type FinishedEvaluation } from './evaluation/count-sample.ts';
import { appendEvent } from './events.ts';

/** The part of a rollout that transitions read. */
export interface RolloutRow {
  readonly seq: number;
  readonly id: RolloutId;
  readonly scenario: string;
  readonly group_id: GroupId | null;
  readonly state: RolloutState;
  readonly attempt: number;
  readonly losses: number;
  /** Losses while it was the only rollout of its worker. */
  readonly lone_losses: number;
  readonly worker: Claim['worker'] | null;
  readonly cancel_asked: number;
  readonly failures: string;
}

/** An ending with its trajectory in stored form. */
export interface StoredEnding {
  readonly state: Ending['state'];
  readonly result?: RolloutResult;
  readonly failure?: Failure;
  readonly trajectory?: Uint8Array;
  /** Instead of `trajectory`, if it was written as a blob. */
  readonly blob?: { readonly key: string; readonly bytes: number };
}

export const rolloutColumns = 'seq, id, scenario, group_id, state, attempt, losses, lone_losses, worker, cancel_asked, failures';

/** The fence: returns a row only while this claim holds the rollout. */
export function readHeld(transaction: Transaction, claim: Claim): RolloutRow | undefined {
  const sql = `SELECT ${rolloutColumns} FROM rollouts WHERE id = ? AND worker = ? AND attempt = ?`;
  return transaction.one<RolloutRow>(sql, claim.id, claim.worker, claim.attempt);
}

/** Moves the rollout into the next stage, under `claim`. */
export function advance(transaction: Transaction, row: RolloutRow, to: { readonly state: RolloutState; readonly claim: Claim }): void {
  const { state, claim } = to;
  checkMove(row, state);
  transaction.run('UPDATE rollouts SET state = ?, worker = ?, attempt = ? WHERE seq = ?', state, claim.worker, claim.attempt, row.seq);
  appendEvent(transaction, {
    kind: 'rollout-move',
    ...subjectOf(row),
    workerId: claim.worker,
    data: { from: row.state, to: state, attempt: claim.attempt, worker: claim.worker, scenario: row.scenario },
  });
}

/** A rollout that lost this many workers may be the cause. */
export const suspectLosses = 2;

export type BackReason =
  | { readonly kind: 'retry'; readonly failure: Failure; readonly delayMs: number }
  | { readonly kind: 'loss'; readonly failure: Failure; readonly delayMs: number; readonly isLone: boolean }
  | { readonly kind: 'release' };

/** Returns the rollout to the queue without a holder; a rollout that was asked to cancel ends instead. */
export function sendBack(transaction: Transaction, row: RolloutRow, reason: BackReason): void {
  checkMove(row, 'queued');
  if (reason.kind !== 'release') recordFailure(transaction, row, reason);
  if (row.cancel_asked) {
    end(transaction, row, { state: 'cancelled' });
    return;
  }
  const notBefore = transaction.nowMs + (reason.kind === 'release' ? 0 : reason.delayMs);
  const losses = row.losses + Number(reason.kind === 'loss');
  const line = notBefore > transaction.nowMs ? 'delayed' : losses >= suspectLosses ? 'suspect' : 'due';
  const sql = "UPDATE rollouts SET state = 'queued', line = ?, worker = NULL, backend = NULL, queued_at = ?, not_before = ? WHERE seq = ?";
  transaction.run(sql, line, transaction.nowMs, notBefore, row.seq);
  appendQueued(transaction, row, reason.kind);
}

export function appendQueued(
  transaction: Transaction,
  row: Pick<RolloutRow, 'id' | 'group_id' | 'attempt' | 'scenario'>,
  reason: string,
): void {
  const data = { reason, attempt: row.attempt, scenario: row.scenario };
  appendEvent(transaction, { kind: 'rollout-queue', ...subjectOf(row), data });
}

export function end(transaction: Transaction, row: RolloutRow, ending: StoredEnding): void {
  checkMove(row, ending.state);
  transaction.run(
    'UPDATE rollouts SET state = ?, worker = NULL, ended_at = ?, result = ?, failure = ? WHERE seq = ?',
    ending.state,
    transaction.nowMs,
    ending.result ? JSON.stringify(ending.result) : null,
    ending.failure ? JSON.stringify(ending.failure) : null,
    row.seq,
  );
  addWaste(transaction, row.seq);
  if (ending.trajectory) transaction.run('INSERT INTO trajectories (seq, body) VALUES (?, ?)', row.seq, ending.trajectory);
  if (ending.blob) {
    const sql = "INSERT INTO trajectories (seq, body, blob, bytes) VALUES (?, x'', ?, ?)";
    transaction.run(sql, row.seq, ending.blob.key, ending.blob.bytes);
  }
  appendEnded(transaction, row, ending);
  appendFinished(transaction, countSample(transaction, row.seq, ending));
}

/** After the end of a sample: the event of an evaluation that it completed. */
export function appendFinished(transaction: Transaction, finished: FinishedEvaluation | undefined): void {
  if (finished) appendEvent(transaction, { kind: 'evaluation-end', data: { ...finished, state: 'done' } });
}

export function appendEnded(
  transaction: Transaction,
  row: Pick<RolloutRow, 'id' | 'group_id' | 'attempt' | 'scenario' | 'worker'>,
  ending: StoredEnding,
): void {
  const { state, result, failure } = ending;
  appendEvent(transaction, {
    kind: 'rollout-end',
    ...subjectOf(row),
    ...definedOf({ workerId: row.worker ?? undefined }),
    data: {
      state,
      reward: result?.reward ?? null,
      stop_reason: result?.stop_reason ?? null,
      code: failure?.code ?? null,
      blame: failure?.blame ?? null,
      scenario: row.scenario,
      attempt: row.attempt,
      ...definedOf({ turns: result?.turns, tokens: result?.tokens, timings: result?.timings, rejudged: result?.score.rejudged }),
    },
  });
}

function recordFailure(transaction: Transaction, row: RolloutRow, reason: Exclude<BackReason, { readonly kind: 'release' }>): void {
  const lone = reason.kind === 'loss' && reason.isLone ? ', lone_losses = lone_losses + 1' : '';
  const counted = reason.kind === 'retry' ? 'retries = retries + 1' : `losses = losses + 1${lone}`;
  const failures: Failure[] = [...JSON.parse(row.failures), reason.failure];
  transaction.run(`UPDATE rollouts SET ${counted}, failures = ? WHERE seq = ?`, JSON.stringify(failures), row.seq);
}

function checkMove(row: RolloutRow, to: RolloutState): void {
  if (canMove(row.state, to)) return;
  throw new RolloutError('internal', `rollout ${row.id} cannot move from ${row.state} to ${to}`);
}

/** The rollout and group that an event is about. */
export function subjectOf({ id, group_id }: Pick<RolloutRow, 'id' | 'group_id'>): { rolloutId: RolloutId; group?: GroupId } {
  return definedOf({ rolloutId: id, group: group_id ?? undefined });
}
