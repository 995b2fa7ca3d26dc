// The ends of many rollouts as a few statements. A sample of an evaluation, a rollout that is judged apart, and an end after a stage that was
// lost run alone: each changes more than its own rows.

import type { RolloutState } from '@millrace/protocol';
import { canMove } from '@millrace/protocol/plain';
import { addWasteOfAll } from '../../rows/operations/batch/waste.ts';
import type { FinishRequest } from '../../rows/operations/claims.ts';
import { appendEnded, isJudgedApart, type RolloutRow } from '../../rows/operations/transitions.ts';
import type { SqlValue, Transaction } from '../../transaction.ts';

type HeldRow = RolloutRow & { readonly i: number };

const heldSql = `SELECT x.i, rollouts.* FROM rollouts
  JOIN json_to_recordset(CAST(? AS json)) AS x (i int, of_id text COLLATE "C", of_worker text COLLATE "C", of_attempt bigint)
    ON id = of_id AND worker = of_worker AND attempt = of_attempt ORDER BY seq FOR UPDATE OF rollouts`;

const sampleSql = 'SELECT seq FROM evaluation_samples WHERE seq = ?';

const endSql = `UPDATE rollouts SET state = x.state, worker = NULL, ended_at = ?2, result = x.result, failure = x.failure
  FROM json_to_recordset(CAST(?1 AS json)) AS x (seq bigint, state text COLLATE "C", result text, failure text) WHERE rollouts.seq = x.seq`;

const dropTurnsSql = 'DELETE FROM turn_log WHERE seq = ANY (ARRAY(SELECT json_array_elements_text(CAST(? AS json))::bigint))';

/** In the order of the requests: false for one that is fenced, undefined for one that has to run alone. */
export async function finishTogether(transaction: Transaction, requests: readonly FinishRequest[]): Promise<(boolean | undefined)[]> {
  const asked = requests.map(({ claim }, i) => ({ i, of_id: claim.id, of_worker: claim.worker, of_attempt: claim.attempt }));
  const held = await transaction.all<HeldRow>(heldSql, JSON.stringify(asked));
  const samples = new Set(
    (
      await transaction.allOf<{ seq: number }>(
        sampleSql,
        held.map(({ seq }) => seq),
      )
    ).map(({ seq }) => seq),
  );
  const isUsual = (row: HeldRow, state: RolloutState) => !samples.has(row.seq) && !isJudgedApart(row) && canMove(row.state, state);
  const usual = held.flatMap((row) => {
    const ending = requests[row.i]?.ending;
    return ending && isUsual(row, ending.state) ? [{ row, ending }] : [];
  });
  if (usual.length > 0) await writeEnds(transaction, usual);
  const ended = new Set(usual.map(({ row }) => row.i));
  const alone = new Set(held.map(({ i }) => i).filter((i) => !ended.has(i)));
  return requests.map((_, i) => (alone.has(i) ? undefined : ended.has(i)));
}

interface HeldEnd {
  readonly row: HeldRow;
  readonly ending: FinishRequest['ending'];
}

async function writeEnds(transaction: Transaction, ends: readonly HeldEnd[]): Promise<void> {
  const toText = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
  const rows = ends.map(({ row, ending }) => ({
    seq: row.seq,
    state: ending.state,
    result: toText(ending.result),
    failure: toText(ending.failure),
  }));
  // A character that PostgreSQL's text cannot hold is replaced, as in every other statement.
  await transaction.run(endSql, JSON.stringify(rows).replaceAll('\\u0000', '\\ufffd'), transaction.nowMs);
  const seqs = (some: readonly HeldEnd[]) => JSON.stringify(some.map(({ row }) => row.seq));
  await transaction.run(dropTurnsSql, seqs(ends));
  const siblings = ends.filter(({ row }) => row.is_sibling === 1);
  if (siblings.length > 0) await addWasteOfAll(transaction, seqs(siblings));
  const kept = ends.flatMap(({ row, ending: { trajectory, blob } }): SqlValue[][] => {
    if (blob) return [[row.seq, new Uint8Array(), blob.key, blob.bytes]];
    return trajectory ? [[row.seq, trajectory, null, null]] : [];
  });
  if (kept.length > 0) await transaction.insert('trajectories (seq, body, blob, bytes)', kept);
  for (const { row, ending } of ends) await appendEnded(transaction, row, ending);
}
