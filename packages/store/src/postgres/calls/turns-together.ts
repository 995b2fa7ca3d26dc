// The turns of many workers as a few statements: the events of all, the contexts of all, and the turn logs of all.

import type { RolloutId, WorkerId } from '@millrace/protocol';
import type { NewEvent, TrafficNotes } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import type { TurnAppend } from '../../turn-log.ts';
import { noteTrafficTogether } from './kept-loads.ts';

export async function appendEventsTogether(transaction: Transaction, requests: readonly (readonly NewEvent[])[]): Promise<undefined[]> {
  for (const event of requests.flat()) await transaction.appendEvent(event);
  return requests.map(() => undefined);
}

/** The last note about a rollout holds. */
export async function noteAllTraffic(transaction: Transaction, requests: readonly TrafficNotes[]): Promise<undefined[]> {
  const contexts = new Map(requests.flatMap((notes) => notes.contexts.map((one) => [`${one.claim.id} ${one.claim.attempt}`, one])));
  await noteTrafficTogether(transaction, { contexts: [...contexts.values()], errors: requests.flatMap(({ errors }) => errors) });
  return requests.map(() => undefined);
}

interface AppendRequest {
  readonly worker: WorkerId;
  readonly appends: readonly TurnAppend[];
}

interface LoggingRow {
  readonly seq: number;
  readonly id: RolloutId;
  readonly worker: WorkerId;
  readonly attempt: number;
}

const toIds = 'ANY (ARRAY(SELECT json_array_elements_text(CAST(? AS json))))';
const dropSql = `DELETE FROM turn_log USING json_to_recordset(CAST(? AS json)) AS x (seq bigint, attempt bigint, after bigint)
  WHERE turn_log.seq = x.seq AND turn_log.turn > x.after AND turn_log.attempt < x.attempt`;

export async function appendTurnsTogether(transaction: Transaction, requests: readonly AppendRequest[]): Promise<RolloutId[][]> {
  const workers = JSON.stringify(requests.map(({ worker }) => worker));
  const liveSql = `SELECT id FROM workers WHERE id = ${toIds} AND ended_at IS NULL ORDER BY id FOR UPDATE`;
  const live = new Set((await transaction.all<{ id: WorkerId }>(liveSql, workers)).map(({ id }) => id));
  const ids = JSON.stringify(requests.flatMap(({ appends }) => appends.map(({ id }) => id)));
  const runningSql = `SELECT seq, id, worker, attempt FROM rollouts WHERE id = ${toIds} AND state = 'run'`;
  const running = new Map((await transaction.all<LoggingRow>(runningSql, ids)).map((row) => [row.id, row]));
  const held = requests.map(({ worker, appends }) =>
    appends.flatMap((append) => {
      const row = running.get(append.id);
      return live.has(worker) && row?.worker === worker && row.attempt === append.attempt ? [{ ...append, seq: row.seq }] : [];
    }),
  );
  const begun = held.flat().flatMap(({ seq, attempt, after }) => (after === undefined ? [] : [{ seq, attempt, after }]));
  if (begun.length > 0) await transaction.run(dropSql, JSON.stringify(begun));
  const values = held.flat().flatMap(({ seq, attempt, turns }) => turns.map(({ turn, body }) => [seq, turn, attempt, body]));
  const replace = 'ON CONFLICT (seq, turn) DO UPDATE SET attempt = excluded.attempt, body = excluded.body';
  if (values.length > 0) await transaction.insert('turn_log (seq, turn, attempt, body)', values, replace);
  return held.map((some) => some.map(({ id }) => id));
}
