// The turn log in rows. An append locks the row of its worker: what takes rollouts from a worker ends the worker first, so one that was given
// up can add nothing.

import type { RolloutId, WorkerId } from '@millrace/protocol';
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

export async function dropTurns(transaction: Transaction, seq: number): Promise<void> {
  await transaction.run('DELETE FROM turn_log WHERE seq = ?', seq);
}
