// What workers change: claiming rollouts and writing under their claims. A write under an outdated claim, or to a rollout that has
// ended, returns false and changes nothing.

import type { Failure, RolloutState, Submission, WorkerId } from '@millrace/protocol';
import type { Claim, ClaimedRollout } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import { groupTaskColumn, toSubmission } from './batch/group-task.ts';
import { chooseClass, wakeDelayed } from './classes.ts';
import { advance, end, type RolloutRow, readHeld, rolloutColumns, type StoredEnding, sendBack, suspectLosses } from './transitions.ts';

export interface QueuedRow extends RolloutRow {
  readonly retries: number;
  readonly created_at: number;
  readonly queued_at: number;
}

export interface ClaimRequest {
  readonly worker: WorkerId;
  readonly limit: number;
}

/** Takes rollouts that are due, those of the class whose turn it is first. */
export type TakeDue = (transaction: Transaction, request: ClaimRequest) => Promise<ClaimedRollout[]>;

export async function claim(transaction: Transaction, request: ClaimRequest, takeDue: TakeDue = takeOneByOne): Promise<ClaimedRollout[]> {
  const { worker, limit } = request;
  const sql = 'SELECT quarantine FROM workers WHERE id = ? AND ended_at IS NULL AND lease_until > ? FOR UPDATE';
  const row = await transaction.one<{ quarantine: number }>(sql, worker, transaction.nowMs);
  if (!row) return [];
  await wakeDelayed(transaction);
  const suspects = await chooseSuspects(transaction, { worker, limit, isQuarantined: row.quarantine === 1 });
  if (suspects) return await Array.fromAsync(suspects, (suspect) => take(transaction, suspect, worker));
  return await takeDue(transaction, request);
}

/** Triggers count each rollout before the next class is chosen. */
async function takeOneByOne(transaction: Transaction, { worker, limit }: ClaimRequest): Promise<ClaimedRollout[]> {
  const claimed: ClaimedRollout[] = [];
  while (claimed.length < limit) {
    const next = await chooseNext(transaction);
    if (!next) break;
    claimed.push(await take(transaction, next, worker));
  }
  return claimed;
}

export const queuedColumns = `${rolloutColumns}, retries, created_at, queued_at`;

/** The oldest rollout of the class whose turn it is. */
async function chooseNext(transaction: Transaction): Promise<QueuedRow | undefined> {
  const chosen = await chooseClass(transaction);
  if (chosen === undefined) return undefined;
  const sql = `SELECT ${queuedColumns} FROM rollouts INDEXED BY rollouts_due
    WHERE state = 'queued' AND line = 'due' AND class = ? ORDER BY seq LIMIT 1`;
  return await transaction.one<QueuedRow>(sql, chosen);
}

/** How many rollouts that lost two workers may share one. A rollout that lost more runs alone. */
const cohortSize = 8;

/**
 * What a worker in quarantine takes; absent for any other worker. While there is other work, one live worker is in quarantine: it
 * finishes what it holds and then takes only suspects, so that a rollout that crashes its worker harms no other.
 */
async function chooseSuspects(
  transaction: Transaction,
  { worker, limit, isQuarantined }: { readonly worker: WorkerId; readonly limit: number; readonly isQuarantined: boolean },
): Promise<QueuedRow[] | undefined> {
  const [first] = await readSuspects(transaction, 1);
  if (!first && !isQuarantined) return undefined;
  await transaction.lock('quarantine');
  const held = await transaction.all<{ losses: number }>('SELECT losses FROM rollouts WHERE worker = ?', worker);
  const holdsSuspect = held.some(({ losses }) => losses >= suspectLosses);
  if (!first && !holdsSuspect) {
    await transaction.run('UPDATE workers SET quarantine = 0 WHERE id = ?', worker);
    return undefined;
  }
  if (!isQuarantined && !(await enterQuarantine(transaction, worker))) return undefined;
  if (!first || (held.length > 0 && !holdsSuspect)) return [];
  const isAlone = [first, ...held].some(({ losses }) => losses > suspectLosses);
  const room = Math.min(limit, (isAlone ? 1 : cohortSize) - held.length);
  return (await readSuspects(transaction, Math.max(0, room))).filter(({ losses }) => isAlone || losses === suspectLosses);
}

async function readSuspects(transaction: Transaction, limit: number): Promise<QueuedRow[]> {
  const sql = `SELECT ${queuedColumns} FROM rollouts INDEXED BY rollouts_suspect
    WHERE state = 'queued' AND line = 'suspect' ORDER BY losses, seq LIMIT ? FOR UPDATE SKIP LOCKED`;
  return await transaction.all<QueuedRow>(sql, limit);
}

/** False when another live worker is in quarantine and there is other work to do. */
async function enterQuarantine(transaction: Transaction, worker: WorkerId): Promise<boolean> {
  const other = 'SELECT 1 FROM workers WHERE quarantine = 1 AND id <> ? AND ended_at IS NULL AND lease_until > ?';
  if ((await transaction.one('SELECT 1 FROM classes WHERE due > 0')) && (await transaction.one(other, worker, transaction.nowMs)))
    return false;
  await transaction.run('UPDATE workers SET quarantine = 1 WHERE id = ?', worker);
  return true;
}

async function take(transaction: Transaction, row: QueuedRow, worker: WorkerId): Promise<ClaimedRollout> {
  const claim = { id: row.id, worker, attempt: row.attempt + 1 };
  await advance(transaction, row, { state: 'init', claim });
  return toClaimed(claim, row, await readSubmission(transaction, row.seq));
}

export function toClaimed(claim: Claim, { retries, created_at, queued_at }: QueuedRow, submission: Submission): ClaimedRollout {
  return { ...claim, submission, retries, createdAtMs: created_at, queuedAtMs: queued_at };
}

export async function move(transaction: Transaction, request: { readonly claim: Claim; readonly to: RolloutState }): Promise<boolean> {
  const row = await readHeld(transaction, request.claim);
  if (row) await advance(transaction, row, { state: request.to, claim: request.claim });
  return row !== undefined;
}

export async function finish(
  transaction: Transaction,
  request: { readonly claim: Claim; readonly ending: StoredEnding },
): Promise<boolean> {
  const row = await readHeld(transaction, request.claim);
  if (row) await end(transaction, row, request.ending);
  return row !== undefined;
}

export async function retry(
  transaction: Transaction,
  request: { readonly claim: Claim; readonly failure: Failure; readonly delayMs: number },
): Promise<boolean> {
  const { claim, failure, delayMs } = request;
  const row = await readHeld(transaction, claim);
  if (row) await sendBack(transaction, row, { kind: 'retry', failure, delayMs });
  return row !== undefined;
}

export async function release(transaction: Transaction, claim: Claim): Promise<boolean> {
  const row = await readHeld(transaction, claim);
  if (row) await sendBack(transaction, row, { kind: 'release' });
  return row !== undefined;
}

async function readSubmission(transaction: Transaction, seq: number): Promise<Submission> {
  const sql = `SELECT body, ${groupTaskColumn} FROM submissions JOIN rollouts USING (seq) WHERE seq = ?`;
  const row = await transaction.one<{ body: string; group_task: string | null }>(sql, seq);
  return toSubmission(row ?? { body: '', group_task: null });
}
