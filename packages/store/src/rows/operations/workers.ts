// Workers and their leases. A lease belongs to a worker, not to a rollout: renewing it updates one row, however much the worker
// holds. A lease ends only when it is revoked.

import type { Failure, RolloutId, StageName, WorkerId, WorkerReport } from '@millrace/protocol';
import { definedOf, errorTable, RolloutError, stages } from '@millrace/protocol/plain';
import { type Claim, type HeldClaims, type LossRules, longestDelayMs } from '../../claim.ts';
import type { WorkerRecord } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import { takeLossEnding } from './losses/loss-endings.ts';
import { settlePause } from './policy.ts';
import { end, isJudgedApart, type LossCount, type RolloutRow, rolloutColumns, sendBack, suspectLosses } from './transitions.ts';
import { countTurns } from './turn-log.ts';

interface Registration {
  readonly id: WorkerId;
  readonly host: string;
  readonly pid: number;
  readonly leaseMs: number;
}

export async function registerWorker(transaction: Transaction, worker: Registration): Promise<void> {
  const { id, host, pid, leaseMs } = worker;
  const sql = 'INSERT INTO workers (id, host, pid, started_at, lease_until) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING';
  const added = await transaction.run(sql, id, host, pid, transaction.nowMs, transaction.nowMs + leaseMs);
  if (added === 0) throw new RolloutError('conflict', `worker id ${id} was used before: register under a new id`);
  await transaction.appendEvent({ kind: 'worker-start', workerId: id, data: { host, pid } });
}

interface Renewal {
  readonly worker: WorkerId;
  readonly leaseMs: number;
  readonly report: WorkerReport;
  readonly held?: HeldClaims;
}

export async function renew(transaction: Transaction, request: Renewal): Promise<{ alive: boolean; cancelled: RolloutId[] }> {
  const { worker, leaseMs, report, held } = request;
  const sql = 'UPDATE workers SET lease_until = ?, report = ? WHERE id = ? AND ended_at IS NULL';
  if ((await transaction.run(sql, transaction.nowMs + leaseMs, JSON.stringify(report), worker)) === 0)
    return { alive: false, cancelled: [] };
  if (held) await takeBackUnheld(transaction, worker, held);
  const asked = await transaction.all<{ id: RolloutId }>(
    'SELECT id FROM rollouts WHERE worker = ? AND cancel_asked = 1 ORDER BY seq',
    worker,
  );
  return { alive: true, cancelled: asked.map(({ id }) => id) };
}

/** A worker that does not name a rollout never got the reply to its claim, or gave up its end. */
async function takeBackUnheld(transaction: Transaction, worker: WorkerId, { claims, ...rules }: HeldClaims): Promise<void> {
  const named = new Map(claims.map(({ id, attempt }) => [id, attempt]));
  const isNamed = ({ id, attempt }: Pick<Claim, 'id' | 'attempt'>) => named.get(id) === attempt;
  const sql = 'SELECT id, attempt FROM rollouts WHERE worker = ?';
  // Only a look, without locks: nearly always they are the same.
  if ((await transaction.all<Pick<Claim, 'id' | 'attempt'>>(sql, worker)).every(isNamed)) return;
  for (const row of await lockRollouts(transaction, worker)) {
    if (isNamed(row)) continue;
    const message = `worker ${worker} no longer holds rollout ${row.id}, which was in ${row.state}`;
    await lose(transaction, row, { message, rules, isLone: false, isDeath: false });
  }
}

async function lockRollouts(transaction: Transaction, worker: WorkerId): Promise<RolloutRow[]> {
  return await transaction.all<RolloutRow>(`SELECT ${rolloutColumns} FROM rollouts WHERE worker = ? ORDER BY seq FOR UPDATE`, worker);
}

export async function dropWorker(
  transaction: Transaction,
  request: { readonly worker: WorkerId; readonly rules: LossRules },
): Promise<void> {
  const { worker, rules } = request;
  if (await transaction.one('SELECT id FROM workers WHERE id = ? AND ended_at IS NULL FOR UPDATE', worker))
    await endWorker(transaction, worker, { rules, reason: 'drop' });
}

/**
 * Gives every worker the time of a whole lease from now, and returns whether all of them have it. Those that have nearly all of it are left
 * alone, and so are rows that another process is just changing: after an outage every process does this, and a thousand of them would wait
 * for each other's rows, which is the next outage.
 */
export async function restartLeases(transaction: Transaction, { leaseMs }: { readonly leaseMs: number }): Promise<boolean> {
  const endsAt = transaction.nowMs + leaseMs;
  const span = [endsAt - Math.floor(leaseMs / 10), endsAt];
  const late = 'FROM workers WHERE ended_at IS NULL AND lease_until NOT BETWEEN ? AND ?';
  const free = `SELECT id ${late} ORDER BY id FOR UPDATE SKIP LOCKED`;
  await transaction.run(`UPDATE workers SET lease_until = ? WHERE id IN (${free})`, endsAt, ...span);
  return (await transaction.one(`SELECT id ${late} LIMIT 1`, ...span)) === undefined;
}

/** Remembered across restarts, so that retention still waits after one. */
export async function noteClockJump(transaction: Transaction): Promise<void> {
  await transaction.run('DELETE FROM clock_jumps');
  await transaction.run('INSERT INTO clock_jumps (at) VALUES (?)', transaction.nowMs);
}

/** When the date last stepped, by the date after the step. */
export async function clockJumpedAtMs(transaction: Transaction): Promise<number | undefined> {
  return (await transaction.one<{ at: number }>('SELECT at FROM clock_jumps'))?.at;
}

/** No lease is this much longer than those of this process. */
const longerLeaseMs = 60_000;

interface Expiry {
  readonly rules: LossRules;
  readonly leaseMs: number;
  readonly asOfMs: number;
}

/** Whether `expire` would find something: a look that writes nothing, for the many processes that take it every second. */
export async function hasLateWorkers(transaction: Transaction, { asOfMs, leaseMs }: Pick<Expiry, 'asOfMs' | 'leaseMs'>): Promise<boolean> {
  const sql = 'SELECT id FROM workers WHERE ended_at IS NULL AND (lease_until <= ? OR lease_until > ?) LIMIT 1';
  return (await transaction.one(sql, asOfMs, asOfMs + leaseMs + longerLeaseMs)) !== undefined;
}

export async function expire(transaction: Transaction, request: Expiry): Promise<number> {
  // A lease that ends later was renewed by a clock that was ahead: its worker may be dead for as long.
  const endsAt = transaction.nowMs + request.leaseMs;
  await transaction.run('UPDATE workers SET lease_until = ? WHERE ended_at IS NULL AND lease_until > ?', endsAt, endsAt + longerLeaseMs);
  const sql = 'SELECT id FROM workers WHERE ended_at IS NULL AND lease_until <= ? ORDER BY id FOR UPDATE SKIP LOCKED';
  const late = await transaction.all<{ id: WorkerId }>(sql, request.asOfMs);
  let touched = 0;
  for (const { id } of late)
    touched += await endWorker(transaction, id, { rules: request.rules, reason: 'lease', waitedMs: request.leaseMs });
  return touched;
}

interface WorkerRow {
  readonly id: WorkerId;
  readonly host: string;
  readonly pid: number;
  readonly started_at: number;
  readonly lease_until: number;
  readonly ended_at: number | null;
  readonly report: string | null;
}

export async function workers(transaction: Transaction): Promise<WorkerRecord[]> {
  const rows = await transaction.all<WorkerRow>('SELECT * FROM workers ORDER BY started_at, id');
  return rows.map((row) => ({
    id: row.id,
    host: row.host,
    pid: row.pid,
    startedAtMs: row.started_at,
    leaseUntilMs: row.lease_until,
    hasEnded: row.ended_at !== null,
    ...definedOf({ report: row.report === null ? undefined : JSON.parse(row.report) }),
  }));
}

async function endWorker(
  transaction: Transaction,
  worker: WorkerId,
  { rules, reason, waitedMs = 0 }: { readonly rules: LossRules; readonly reason: 'drop' | 'lease'; readonly waitedMs?: number },
): Promise<number> {
  const { nowMs } = transaction;
  await transaction.run(
    'UPDATE workers SET ended_at = ?1, lease_until = CASE WHEN lease_until > ?1 THEN ?1 ELSE lease_until END WHERE id = ?2',
    nowMs,
    worker,
  );
  const held = await lockRollouts(transaction, worker);
  const suspects = findSuspects(held);
  const { machine, isLeaving } = await readLastReport(transaction, worker);
  for (const row of held) {
    const message = `worker ${worker} on machine ${machine} was lost while rollout ${row.id} was in ${row.state}${describeCause(row, held, suspects)}`;
    const isLone = held.length === 1 && row.losses >= suspectLosses;
    await lose(transaction, row, { message, rules, isLone, isDeath: !isLeaving, waitedMs });
  }
  const data = { reason, machine, rollouts: held.length, ...(suspects.length > 0 && { suspects: suspects.map(({ id }) => id) }) };
  await transaction.appendEvent({ kind: 'worker-end', workerId: worker, data });
  await settlePause(transaction);
  return held.length;
}

/** The name of its machine, or its host if it never reported one; and whether it was asked to end. */
async function readLastReport(
  transaction: Transaction,
  worker: WorkerId,
): Promise<{ readonly machine: string; readonly isLeaving: boolean }> {
  const row = await transaction.one<Pick<WorkerRow, 'host' | 'report'>>('SELECT host, report FROM workers WHERE id = ?', worker);
  const report: WorkerReport | undefined = row?.report ? JSON.parse(row.report) : undefined;
  return { machine: report?.machine?.name ?? row?.host ?? 'unknown', isLeaving: report?.draining === true };
}

const mostNamed = 3;

/** Those that lost the most workers before, if they are few. */
function findSuspects(held: readonly RolloutRow[]): readonly RolloutRow[] {
  const most = Math.max(...held.map(({ losses }) => losses));
  const suspects = held.filter(({ losses }) => losses > 0 && losses === most);
  return suspects.length <= mostNamed ? suspects : [];
}

function describeCause(row: RolloutRow, held: readonly RolloutRow[], suspects: readonly RolloutRow[]): string {
  if (held.length === 1) return '; it was the only rollout of this worker, and may be the cause';
  const named = suspects.map(({ id, losses }) => `${id === row.id ? 'this rollout' : `rollout ${id}`}, which lost ${losses} before`);
  return named.length === 0 ? '' : `; the likely cause is ${named.join(', or ')}`;
}

/** A rollout that loses its worker this many times while it runs alone is the cause. The first time may be a coincidence. */
function mostLoneLosses({ maxLosses }: LossRules): number {
  return Math.max(2, Math.ceil(maxLosses / 5));
}

interface Loss {
  readonly message: string;
  readonly rules: LossRules;
  /** It was the only rollout of its worker, and lost several before. */
  readonly isLone: boolean;
  /** Its worker died, and had not been asked to end. */
  readonly isDeath: boolean;
  /** How long it has waited for its lease to end, which counts as waiting. */
  readonly waitedMs?: number;
}

async function lose(transaction: Transaction, row: RolloutRow, loss: Loss): Promise<void> {
  const { message, rules, isLone, isDeath, waitedMs = 0 } = loss;
  if (isLone && isDeath && !row.cancel_asked && (await endByPolicy(transaction, row, message))) return;
  const { blame, retryable } = errorTable['worker-lost'];
  const stage = stages.find((name: StageName) => name === row.state) ?? null;
  const failure: Failure = { code: 'worker-lost', message, blame, retryable, stage, attempt: row.attempt };
  const isDeathInEvaluate = isDeath && stage === 'evaluate';
  // One that dies in evaluate is not given up before it was judged apart: a verdict is more than a loss.
  const isCause = isLone && row.lone_losses + 1 >= mostLoneLosses(rules) && (isJudgedApart(row) || !isDeathInEvaluate);
  const isRare = stage === 'run' && (await isRareLoss(transaction, row));
  if (row.cancel_asked || isRare || (row.losses + 1 < rules.maxLosses && !isCause)) {
    const delayMs = isRare ? 0 : Math.max(0, Math.min((rules.retryDelayMs ?? 0) * 2 ** row.losses, longestDelayMs) - waitedMs);
    const counts: LossCount[] = [
      ...(isLone && !isRare ? ['lone_losses' as const] : []),
      ...(isDeathInEvaluate ? ['evaluate_losses' as const] : []),
    ];
    await sendBack(transaction, row, { kind: 'loss', failure, delayMs, counts, isRare });
  } else {
    await transaction.run('UPDATE rollouts SET losses = losses + 1 WHERE seq = ?', row.seq);
    await end(transaction, row, { state: 'failed', failure });
  }
}

/** A rollout that continues may lose one worker for this many saved turns: it is long, and not the cause. */
const turnsPerLoss = 10;

async function isRareLoss(transaction: Transaction, { seq, failures }: RolloutRow): Promise<boolean> {
  const before: readonly Failure[] = JSON.parse(failures);
  const losses = before.filter(({ code }) => code === 'worker-lost').length + 1;
  return losses * turnsPerLoss <= (await countTurns(transaction, seq));
}

/** False unless its worker stored, before it judged the rollout, how it ends in this case. */
async function endByPolicy(transaction: Transaction, row: RolloutRow, lost: string): Promise<boolean> {
  const ending = isJudgedApart(row) ? await takeLossEnding(transaction, row) : undefined;
  if (!ending) return false;
  const { blame, retryable } = errorTable['policy-failed'];
  const died = `judging what the agent left took ${row.evaluate_losses + 1} workers, the last of which had judged an agent that did nothing`;
  const failure: Failure = {
    code: 'policy-failed',
    message: `${died}: ${lost}`,
    blame,
    retryable,
    stage: 'evaluate',
    attempt: row.attempt,
  };
  await transaction.run('UPDATE rollouts SET losses = losses + 1, evaluate_losses = evaluate_losses + 1 WHERE seq = ?', row.seq);
  await end(transaction, row, { state: 'done', ...ending, failure });
  return true;
}
