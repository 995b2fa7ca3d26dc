// The turn log in rows. An append locks the row of its worker: what takes rollouts from a worker ends the worker first, so one that was given
// up can add nothing.

import type { ForkOrigin, RolloutId, WorkerId } from '@millrace/protocol';
import { RolloutError } from '@millrace/protocol/plain';
import type { Claim } from '../../claim.ts';
import type { Transaction } from '../../transaction.ts';
import type { LoggedTurn, TurnAppend } from '../../turn-log.ts';

interface RunningRow {
  readonly seq: number;
  readonly id: RolloutId;
  readonly attempt: number;
}

export async function appendTurns(
  transaction: Transaction,
  { worker, appends }: { readonly worker: WorkerId; readonly appends: readonly TurnAppend[] },
): Promise<RolloutId[]> {
  if (!(await transaction.one('SELECT id FROM workers WHERE id = ? AND ended_at IS NULL FOR UPDATE', worker))) return [];
  const running = await transaction.all<RunningRow>("SELECT seq, id, attempt FROM rollouts WHERE worker = ? AND state = 'run'", worker);
  const rows = new Map(running.map((row) => [row.id, row]));
  const held = appends.flatMap((append) => {
    const row = rows.get(append.id);
    return row?.attempt === append.attempt ? [{ ...append, seq: row.seq }] : [];
  });
  for (const { seq, attempt, after } of held)
    if (after !== undefined) await transaction.run('DELETE FROM turn_log WHERE seq = ? AND turn > ? AND attempt < ?', seq, after, attempt);
  const values = held.flatMap(({ seq, attempt, turns }) => turns.map(({ turn, body }) => [seq, turn, attempt, body]));
  const replace = 'ON CONFLICT (seq, turn) DO UPDATE SET attempt = excluded.attempt, body = excluded.body';
  if (values.length > 0) await transaction.insert('turn_log (seq, turn, attempt, body)', values, replace);
  return held.map(({ id }) => id);
}

export async function loggedTurns(transaction: Transaction, { id, worker, attempt }: Claim): Promise<LoggedTurn[]> {
  const sql = `SELECT turn, turn_log.attempt AS attempt, body FROM turn_log JOIN rollouts ON rollouts.seq = turn_log.seq
    WHERE rollouts.id = ? AND rollouts.worker = ? AND rollouts.attempt = ? ORDER BY turn`;
  return await transaction.all<LoggedTurn>(sql, id, worker, attempt);
}

export async function savedTurns(transaction: Transaction, id: RolloutId): Promise<LoggedTurn[]> {
  const sql = `SELECT turn, turn_log.attempt AS attempt, body FROM turn_log JOIN rollouts ON rollouts.seq = turn_log.seq
    WHERE rollouts.id = ? ORDER BY turn`;
  return await transaction.all<LoggedTurn>(sql, id);
}

/** How many turns of it are saved. */
export async function countTurns(transaction: Transaction, seq: number): Promise<number> {
  return (await transaction.one<{ turn: number | null }>('SELECT max(turn) AS turn FROM turn_log WHERE seq = ?', seq))?.turn ?? 0;
}

/** Those of its own attempts: without those that it shares as a fork, it could not begin. */
export async function dropOwnTurns(transaction: Transaction, seq: number): Promise<void> {
  await transaction.run('DELETE FROM turn_log WHERE seq = ? AND attempt > 0', seq);
}

export async function dropTurns(transaction: Transaction, seq: number): Promise<void> {
  await transaction.run('DELETE FROM turn_log WHERE seq = ?', seq);
}

/** Gives a new fork the turns that it shares. Throws if the log does not have all of them any more. */
export async function shareTurns(transaction: Transaction, seq: number, { rollout, turn }: ForkOrigin): Promise<void> {
  const sql = `INSERT INTO turn_log (seq, turn, attempt, body)
    SELECT CAST(? AS bigint), turn, 0, body FROM turn_log WHERE seq = (SELECT seq FROM rollouts WHERE id = ?) AND turn <= ?`;
  const shared = await transaction.run(sql, seq, rollout, turn);
  if (shared !== turn) throw new RolloutError('conflict', `rollout ${rollout} has no saved turns up to turn ${turn} any more`);
}
