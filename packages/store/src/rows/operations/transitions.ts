// The only statements that change a rollout's state after it was created. Each checks the table of legal moves and writes its
// event, in the caller's transaction.

import type { Failure, GroupId, RolloutId, RolloutResult, RolloutState } from '@millrace/protocol';
import { canMove, definedOf, RolloutError, rolloutStates } from '@millrace/protocol/plain';
import type { Claim, Ending } from '../../claim.ts';
import type { RolloutMove, Transaction } from '../../transaction.ts';
import { addWaste } from './batch/waste.ts';
import { countSample, type FinishedEvaluation } from './evaluation/count-sample.ts';
import { dropLossEnding } from './losses/loss-endings.ts';
import { dropOwnTurns, dropTurns } from './turn-log.ts';

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
  /** Workers that died while it was in evaluate. */
  readonly evaluate_losses: number;
  readonly worker: Claim['worker'] | null;
  readonly cancel_asked: number;
  /** 1 for a rollout of a batch. */
  readonly is_sibling: number;
  readonly class: number;
  /** How it waits, if it is queued: `due`, `delayed` or `suspect`. */
  readonly line: string;
  readonly failures: string;
}

/** An ending with its trajectory in stored form. */
export interface StoredEnding {
  readonly state: Ending['state'];
  readonly result?: RolloutResult;
  readonly failure?: Failure;
  readonly trajectory?: Uint8Array;
  readonly keepsTurns?: true;
  /** Instead of `trajectory`, if it was written as a blob. */
  readonly blob?: { readonly key: string; readonly bytes: number };
}

export const rolloutColumns =
  'seq, id, scenario, group_id, state, attempt, losses, lone_losses, evaluate_losses, worker, cancel_asked, is_sibling, class, line, failures';

/** The fence: returns a row only while this claim holds the rollout. */
export async function readHeld(transaction: Transaction, claim: Claim): Promise<RolloutRow | undefined> {
  const sql = `SELECT ${rolloutColumns} FROM rollouts WHERE id = ? AND worker = ? AND attempt = ? FOR UPDATE`;
  return await transaction.one<RolloutRow>(sql, claim.id, claim.worker, claim.attempt);
}

/** Moves the rollout into the next stage, under `claim`. */
export async function advance(
  transaction: Transaction,
  row: RolloutRow,
  to: { readonly state: RolloutState; readonly claim: Claim },
): Promise<void> {
  const { state, claim } = to;
  checkMove(transaction, row, state);
  const { worker, attempt } = claim;
  // A column that is set to what it was still changes its index.
  if (row.worker === worker && row.attempt === attempt)
    await transaction.run('UPDATE rollouts SET state = ? WHERE seq = ?', state, row.seq);
  else await transaction.run('UPDATE rollouts SET state = ?, worker = ?, attempt = ? WHERE seq = ?', state, worker, attempt, row.seq);
  await transaction.noteMove(toMove(row, state));
  await appendMoved(transaction, row, to);
}

export function toMove({ class: own, line, state }: RolloutRow, to: RolloutState): RolloutMove {
  return { class: own, line, from: state, to };
}

export async function appendMoved(
  transaction: Transaction,
  row: RolloutRow,
  { state, claim }: { readonly state: RolloutState; readonly claim: Claim },
): Promise<void> {
  await transaction.appendEvent({
    kind: 'rollout-move',
    ...subjectOf(row),
    workerId: claim.worker,
    data: { from: row.state, to: state, attempt: claim.attempt, worker: claim.worker, scenario: row.scenario },
  });
}

/** A rollout that lost this many workers may be the cause. */
export const suspectLosses = 2;

/** Whether it lost so many workers in evaluate that it runs alone, and that the next one is the agent's fault. */
export function isJudgedApart({ evaluate_losses }: Pick<RolloutRow, 'evaluate_losses'>): boolean {
  return evaluate_losses >= suspectLosses;
}

/** What a loss adds one to, besides `losses`. */
export type LossCount = 'lone_losses' | 'evaluate_losses';

type BackReason =
  | { readonly kind: 'retry'; readonly failure: Failure; readonly delayMs: number }
  | {
      readonly kind: 'loss';
      readonly failure: Failure;
      readonly delayMs: number;
      readonly counts: readonly LossCount[];
      /** See `isRareLoss`. */
      readonly isRare: boolean;
    }
  | { readonly kind: 'release' };

/** Returns the rollout to the queue without a holder; a rollout that was asked to cancel ends instead. */
export async function sendBack(transaction: Transaction, row: RolloutRow, reason: BackReason): Promise<void> {
  checkMove(transaction, row, 'queued');
  if (reason.kind !== 'release') await recordFailure(transaction, row, reason);
  if (row.cancel_asked) {
    await end(transaction, row, { state: 'cancelled' });
    return;
  }
  if (isJudgedApart(row)) await dropLossEnding(transaction, row.seq);
  if (reason.kind === 'retry' && !canContinueAfter(reason.failure)) await dropOwnTurns(transaction, row.seq);
  const notBefore = transaction.nowMs + (reason.kind === 'release' ? 0 : reason.delayMs);
  const losses = row.losses + Number(reason.kind === 'loss' && !reason.isRare);
  const line = notBefore > transaction.nowMs ? 'delayed' : losses >= suspectLosses ? 'suspect' : 'due';
  const sql = "UPDATE rollouts SET state = 'queued', line = ?, worker = NULL, backend = NULL, queued_at = ?, not_before = ? WHERE seq = ?";
  await transaction.run(sql, line, transaction.nowMs, notBefore, row.seq);
  await appendQueued(transaction, row, reason.kind);
}

/** What a backend or a sandbox did not do is worth another try from there. Anything else may come from what is in the turns. */
function canContinueAfter({ blame }: Failure): boolean {
  return blame === 'backend' || blame === 'sandbox';
}

export async function appendQueued(
  transaction: Transaction,
  row: Pick<RolloutRow, 'id' | 'group_id' | 'attempt' | 'scenario'>,
  reason: string,
): Promise<void> {
  const data = { reason, attempt: row.attempt, scenario: row.scenario };
  await transaction.appendEvent({ kind: 'rollout-queue', ...subjectOf(row), data });
}

export async function end(transaction: Transaction, row: RolloutRow, ending: StoredEnding): Promise<void> {
  checkMove(transaction, row, ending.state);
  await transaction.run(
    'UPDATE rollouts SET state = ?, worker = NULL, ended_at = ?, result = ?, failure = ? WHERE seq = ?',
    ending.state,
    transaction.nowMs,
    ending.result ? JSON.stringify(ending.result) : null,
    ending.failure ? JSON.stringify(ending.failure) : null,
    row.seq,
  );
  await transaction.noteMove(toMove(row, ending.state));
  if (isJudgedApart(row)) await dropLossEnding(transaction, row.seq);
  if (!ending.keepsTurns && (row.attempt > 0 || ending.state === 'cancelled')) await dropTurns(transaction, row.seq);
  if (row.is_sibling === 1) await addWaste(transaction, row.seq);
  if (ending.trajectory) await transaction.run('INSERT INTO trajectories (seq, body) VALUES (?, ?)', row.seq, ending.trajectory);
  if (ending.blob) {
    const sql = 'INSERT INTO trajectories (seq, body, blob, bytes) VALUES (?, ?, ?, ?)';
    await transaction.run(sql, row.seq, new Uint8Array(), ending.blob.key, ending.blob.bytes);
  }
  await appendEnded(transaction, row, ending);
  await appendFinished(transaction, await countSample(transaction, row.seq, ending));
}

/** After the end of a sample: the event of an evaluation that it completed. */
export async function appendFinished(transaction: Transaction, finished: FinishedEvaluation | undefined): Promise<void> {
  if (finished) await transaction.appendEvent({ kind: 'evaluation-end', data: { ...finished, state: 'done' } });
}

export async function appendEnded(
  transaction: Transaction,
  row: Pick<RolloutRow, 'id' | 'group_id' | 'attempt' | 'scenario' | 'worker'>,
  ending: StoredEnding,
): Promise<void> {
  const { state, result, failure } = ending;
  await transaction.appendEvent({
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

async function recordFailure(
  transaction: Transaction,
  row: RolloutRow,
  reason: Exclude<BackReason, { readonly kind: 'release' }>,
): Promise<void> {
  const counts = reason.kind === 'retry' ? ['retries'] : [...(reason.isRare ? [] : ['losses']), ...reason.counts];
  const counted = counts.map((column) => `${column} = ${column} + 1, `).join('');
  const failures: Failure[] = [...JSON.parse(row.failures), reason.failure];
  await transaction.run(`UPDATE rollouts SET ${counted}failures = ? WHERE seq = ?`, JSON.stringify(failures), row.seq);
}

const stageAfter: Partial<Record<RolloutState, RolloutState>> = { init: 'ready', ready: 'run', run: 'evaluate' };

/** Whether the worker that holds the rollout may have moved it to this state: it is there, or moves there were lost. */
export function mayBeIn(transaction: Transaction, { state }: Pick<RolloutRow, 'state'>, wanted: RolloutState): boolean {
  if (state === wanted) return true;
  const next = transaction.mayMissMoves ? stageAfter[state] : undefined;
  return next !== undefined && mayBeIn(transaction, { state: next }, wanted);
}

/** The states from which it is a move to this one. */
function stagesBefore(to: RolloutState): readonly RolloutState[] {
  return rolloutStates.filter((from) => canMove(from, to));
}

function checkMove(transaction: Transaction, row: RolloutRow, to: RolloutState): void {
  if (stagesBefore(to).some((from) => mayBeIn(transaction, row, from))) return;
  throw new RolloutError('internal', `rollout ${row.id} cannot move from ${row.state} to ${to}`);
}

/** The rollout and group that an event is about. */
export function subjectOf({ id, group_id }: Pick<RolloutRow, 'id' | 'group_id'>): { rolloutId: RolloutId; group?: GroupId } {
  return definedOf({ rolloutId: id, group: group_id ?? undefined });
}
