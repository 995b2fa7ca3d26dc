// What a batch sampled but did not deliver, kept as a sum: a rollout is added when it ends, and those of a group move when the
// group's state changes. A rollout counts for the batch that sampled it, even if its group was carried over.

import type { Waste } from '@millrace/protocol';
import type { BatchRecord } from '../../../batch-store.ts';
import type { Transaction } from '../../../transaction.ts';

type WasteKind = keyof BatchRecord['wasted'];

// In an open or delivered group, failed rollouts count as `failed`, stopped ones as `surplus`. Whole milliseconds add up exactly.
const change = (whose: string) => `INSERT INTO batch_waste SELECT s.batch_seq,
  CASE WHEN g.state NOT IN ('open', 'delivered') THEN g.state WHEN r.state = 'failed' THEN 'failed' ELSE 'surplus' END AS kind,
  ?1 * count(*), CAST(?1 * coalesce(sum(json_extract(r.result, '$.tokens.sampled')), 0) AS BIGINT),
  ?1 * coalesce(sum(CAST(round(json_extract(r.result, '$.timings.init_ms') + json_extract(r.result, '$.timings.run_ms')
    + json_extract(r.result, '$.timings.evaluate_ms')) AS BIGINT)), 0)
  FROM siblings s JOIN rollouts r ON r.seq = s.seq JOIN batch_groups g ON g.seq = s.group_seq
  WHERE s.${whose} AND s.place IS NULL AND r.attempt > 0 AND r.ended_at IS NOT NULL AND (g.state <> 'open' OR r.state <> 'done')
  GROUP BY s.batch_seq, kind
  ON CONFLICT (batch_seq, kind) DO UPDATE SET rollouts = batch_waste.rollouts + excluded.rollouts,
  tokens = batch_waste.tokens + excluded.tokens, ms = batch_waste.ms + excluded.ms`;
const [changeGroup, changeRollout] = [change('group_seq = ?2'), change('seq = ?2')];
const changeRollouts = change('seq = ANY (ARRAY(SELECT json_array_elements_text(CAST(?2 AS json))::bigint))');

/** For a rollout that has just ended. */
export async function addWaste(transaction: Transaction, rolloutSeq: number): Promise<void> {
  await transaction.run(changeRollout, 1, rolloutSeq);
}

/** For rollouts that have just ended, in PostgreSQL: a list of rows as JSON. */
export async function addWasteOfAll(transaction: Transaction, seqs: string): Promise<void> {
  await transaction.run(changeRollouts, 1, seqs);
}

/** Runs a change of the group's state or of its members' places, and moves the waste of its siblings along. */
export async function moveWaste(transaction: Transaction, groupSeq: number, work: () => Promise<unknown>): Promise<void> {
  // A sibling that ends meanwhile waits, and is then counted by the new state of its group.
  await transaction.all(
    'SELECT rollouts.seq FROM siblings JOIN rollouts USING (seq) WHERE group_seq = ? ORDER BY seq FOR UPDATE OF rollouts',
    groupSeq,
  );
  await transaction.run(changeGroup, -1, groupSeq);
  await work();
  await transaction.run(changeGroup, 1, groupSeq);
}

export async function readWaste(transaction: Transaction, batchSeq: number): Promise<BatchRecord['wasted']> {
  const none: Waste = { rollouts: 0, tokens: 0, seconds: 0 };
  const wasted: Record<WasteKind, Waste> = { uniform: none, failed: none, surplus: none, stale: none };
  const sql = 'SELECT kind, rollouts, tokens, ms / 1000.0 AS seconds FROM batch_waste WHERE batch_seq = ?';
  for (const { kind, rollouts, tokens, seconds } of await transaction.all<Waste & { kind: WasteKind }>(sql, batchSeq))
    wasted[kind] = { rollouts, tokens, seconds };
  return wasted;
}
