// What workers change: claiming rollouts and writing under their claims. A write under an outdated claim, or to a rollout that has
// ended, returns false and changes nothing.

import type { Failure, MachineLabels, RolloutState, Submission, WorkerId } from '@millrace/protocol';
import { RolloutError } from '@millrace/protocol/plain';
import type { Claim } from '../../claim.ts';
import type { ClaimedRollout, Repeat } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import { fromStoredName, hasLabels } from '../../work-class.ts';
import { groupTaskColumn, toSubmission } from './batch/group-task.ts';
import { chooseClass, requireMore, wakeDelayed } from './classes.ts';
import { type LossEnding, writeLossEnding } from './losses/loss-endings.ts';
import {
  advance,
  end,
  isJudgedApart,
  mayBeIn,
  type RolloutRow,
  readHeld,
  rolloutColumns,
  type StoredEnding,
  sendBack,
  suspectLosses,
} from './transitions.ts';

export interface QueuedRow extends RolloutRow {
  readonly retries: number;
  readonly created_at: number;
  readonly queued_at: number;
}

export interface ClaimRequest {
  readonly worker: WorkerId;
  readonly limit: number;
  /** Of its machine. */
  readonly labels: MachineLabels;
}

export interface DueRequest extends ClaimRequest {
  readonly workerRow: ClaimingWorker;
}

/** What a claim reads of its worker: `quarantine`, and the `workerColumns` of the engine. */
interface ClaimingWorker {
  readonly quarantine: number;
  readonly [column: string]: unknown;
}

export interface ClaimEngine {
  /** Takes rollouts that are due, those of the class whose turn it is first. */
  takeDue(transaction: Transaction, request: DueRequest): Promise<ClaimedRollout[]>;
  readonly workerColumns?: string;
}

export async function claim(
  transaction: Transaction,
  request: ClaimRequest,
  { takeDue, workerColumns = '' }: ClaimEngine = { takeDue: takeOneByOne },
): Promise<ClaimedRollout[]> {
  const { worker } = request;
  const sql = `SELECT quarantine${workerColumns} FROM workers WHERE id = ? AND ended_at IS NULL AND lease_until > ? FOR UPDATE`;
  const workerRow = await transaction.one<ClaimingWorker>(sql, worker, transaction.nowMs);
  if (!workerRow) return [];
  await wakeDelayed(transaction);
  const suspects = await chooseSuspects(transaction, { ...request, isQuarantined: workerRow.quarantine === 1 });
  if (suspects) return await Array.fromAsync(suspects, (suspect) => take(transaction, suspect, worker));
  return await takeDue(transaction, { ...request, workerRow });
}

/** Each rollout is counted before the next class is chosen. */
async function takeOneByOne(transaction: Transaction, { worker, limit, labels }: ClaimRequest): Promise<ClaimedRollout[]> {
  const claimed: ClaimedRollout[] = [];
  while (claimed.length < limit) {
    const next = await chooseNext(transaction, labels);
    if (!next) break;
    claimed.push(await take(transaction, next, worker));
  }
  return claimed;
}

export const queuedColumns = `${rolloutColumns}, retries, created_at, queued_at`;

/** The oldest rollout of the class whose turn it is. */
async function chooseNext(transaction: Transaction, labels: MachineLabels): Promise<QueuedRow | undefined> {
  const chosen = await chooseClass(transaction, labels);
  if (chosen === undefined) return undefined;
  const sql = `SELECT ${queuedColumns} FROM rollouts INDEXED BY rollouts_due
    WHERE state = 'queued' AND line = 'due' AND class = ? ORDER BY seq LIMIT 1`;
  return await transaction.one<QueuedRow>(sql, chosen);
}

/** How many rollouts that lost two workers may share one. A rollout that lost more, or both in evaluate, runs alone. */
const cohortSize = 8;

/**
 * What a worker in quarantine takes; absent for any other worker. While there is other work, one live worker is in quarantine: it
 * finishes what it holds and then takes only suspects, so that a rollout that crashes its worker harms no other.
 */
async function chooseSuspects(
  transaction: Transaction,
  { worker, limit, labels, isQuarantined }: ClaimRequest & { readonly isQuarantined: boolean },
): Promise<QueuedRow[] | undefined> {
  // Most claims find none, and a query with few columns is by far the cheaper one.
  if (!isQuarantined && !(await transaction.one(`SELECT 1 AS found FROM ${suspects} LIMIT 1`))) return undefined;
  const [first] = await readSuspects(transaction, 1, labels);
  if (!first && !isQuarantined) return undefined;
  await transaction.lock('quarantine');
  const held = await transaction.all<Lost>('SELECT losses, evaluate_losses FROM rollouts WHERE worker = ?', worker);
  const holdsSuspect = held.some(({ losses }) => losses >= suspectLosses);
  if (!first && !holdsSuspect) {
    await transaction.run('UPDATE workers SET quarantine = 0 WHERE id = ?', worker);
    return undefined;
  }
  if (!isQuarantined && !(await enterQuarantine(transaction, worker))) return undefined;
  if (!first || (held.length > 0 && !holdsSuspect)) return [];
  const isAlone = [first, ...held].some(needsOwnWorker);
  const room = Math.min(limit, (isAlone ? 1 : cohortSize) - held.length);
  return (await readSuspects(transaction, Math.max(0, room), labels)).filter((one) => isAlone || !needsOwnWorker(one));
}

type Lost = Pick<RolloutRow, 'losses' | 'evaluate_losses'>;

function needsOwnWorker(row: Lost): boolean {
  return row.losses > suspectLosses || isJudgedApart(row);
}

/** How many suspects a claim looks at: those that require other labels are passed over. */
const mostSuspects = 100;

const suspects = "rollouts INDEXED BY rollouts_suspect WHERE state = 'queued' AND line = 'suspect'";

async function readSuspects(transaction: Transaction, limit: number, labels: MachineLabels): Promise<QueuedRow[]> {
  const sql = `SELECT ${queuedColumns}, (SELECT name FROM classes WHERE classes.seq = rollouts.class) AS class_name
    FROM ${suspects} ORDER BY losses, seq LIMIT ? FOR UPDATE SKIP LOCKED`;
  const rows = await transaction.all<QueuedRow & { readonly class_name: string | null }>(sql, mostSuspects);
  return rows.filter(({ class_name: name }) => hasLabels(labels, fromStoredName(name ?? '').requires)).slice(0, limit);
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

export function toClaimed(claim: Claim, row: QueuedRow, submission: Submission): ClaimedRollout {
  const { retries, created_at, queued_at } = row;
  const failures: Failure[] = JSON.parse(row.failures);
  return { ...claim, submission, retries, createdAtMs: created_at, queuedAtMs: queued_at, failures, isJudgedApart: isJudgedApart(row) };
}

export async function unanswered(
  transaction: Transaction,
  { worker, named }: { readonly worker: WorkerId; readonly named: readonly Pick<Claim, 'id' | 'attempt'>[] },
): Promise<ClaimedRollout[]> {
  const sql = `SELECT ${queuedColumns} FROM rollouts
    WHERE worker = ? AND state = 'init' AND EXISTS (SELECT 1 FROM workers WHERE workers.id = rollouts.worker AND ended_at IS NULL) ORDER BY seq`;
  const known = new Map(named.map(({ id, attempt }) => [id, attempt]));
  const rows = (await transaction.all<QueuedRow>(sql, worker)).filter(({ id, attempt }) => known.get(id) !== attempt);
  return await Array.fromAsync(rows, async (row) =>
    toClaimed({ id: row.id, worker, attempt: row.attempt }, row, await readSubmission(transaction, row.seq)),
  );
}

interface MoveRequest extends Repeat {
  readonly claim: Claim;
  readonly to: RolloutState;
}

export async function move(transaction: Transaction, request: MoveRequest): Promise<boolean> {
  const row = await readHeld(transaction, request.claim);
  if (request.isRepeated && row?.state === request.to) return true;
  if (row) await advance(transaction, row, { state: request.to, claim: request.claim });
  return row !== undefined;
}

export async function endIfLost(transaction: Transaction, request: { readonly claim: Claim } & LossEnding & Repeat): Promise<boolean> {
  const { claim, isRepeated: _, ...ending } = request;
  const row = await readHeld(transaction, claim);
  if (row && (!mayBeIn(transaction, row, 'evaluate') || !isJudgedApart(row)))
    throw new RolloutError('internal', `rollout ${row.id} in ${row.state} is not judged apart`);
  if (row) await writeLossEnding(transaction, row, ending);
  return row !== undefined;
}

export interface FinishRequest extends Repeat {
  readonly claim: Claim;
  readonly ending: StoredEnding;
}

export async function finish(transaction: Transaction, request: FinishRequest): Promise<boolean> {
  const row = await readHeld(transaction, request.claim);
  if (row) await end(transaction, row, request.ending);
  return row !== undefined;
}

/** Whether the rollout has this end, under this attempt. */
export async function hasEndedSo(
  transaction: Transaction,
  { claim, ending }: { readonly claim: Claim; readonly ending: StoredEnding },
): Promise<boolean> {
  const sql = 'SELECT result, failure FROM rollouts WHERE id = ? AND attempt = ? AND state = ?';
  const row = await transaction.one<{ result: string | null; failure: string | null }>(sql, claim.id, claim.attempt, ending.state);
  const isSame = (stored: string | null | undefined, given: unknown) => stored === (given === undefined ? null : JSON.stringify(given));
  return isSame(row?.result, ending.result) && isSame(row?.failure, ending.failure);
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

export async function release(
  transaction: Transaction,
  request: { readonly claim: Claim; readonly requires: MachineLabels },
): Promise<boolean> {
  const row = await readHeld(transaction, request.claim);
  if (!row) return false;
  const requiresMore = Object.keys(request.requires).length > 0;
  const own = requiresMore ? await requireMore(transaction, row, request.requires) : row.class;
  await sendBack(transaction, { ...row, class: own }, { kind: 'release' });
  return true;
}

async function readSubmission(transaction: Transaction, seq: number): Promise<Submission> {
  const sql = `SELECT body, ${groupTaskColumn} FROM submissions JOIN rollouts USING (seq) WHERE seq = ?`;
  const row = await transaction.one<{ body: string; group_task: string | null }>(sql, seq);
  return toSubmission(row ?? { body: '', group_task: null });
}
