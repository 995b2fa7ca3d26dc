// Queries for groups: the open ones of a batch with their siblings, the surplus that it can carry over, and its queued tasks.

import type { BatchId, GroupId, RolloutId, RolloutState } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import type { OpenGroup, Sibling, SurplusGroup, Task } from '../../../batch-store.ts';
import type { Transaction } from '../../../transaction.ts';

interface SiblingRow {
  readonly group_id: GroupId;
  readonly task_index: number;
  readonly replacements: number;
  readonly group_created_at: number;
  readonly id: RolloutId;
  readonly state: RolloutState;
  readonly cancel_asked: number;
  readonly reward: number | null;
  readonly first_version: number | null;
  readonly failure: string | null;
  readonly has_trajectory: number;
}

const siblingColumns = `g.id AS group_id, g.task_index, g.replacements, g.created_at AS group_created_at, r.id, r.state, r.cancel_asked,
  json_extract(r.result, '$.reward') AS reward, json_extract(r.result, '$.policy_versions.first') AS first_version, r.failure,
  CASE WHEN EXISTS (SELECT 1 FROM trajectories t WHERE t.seq = r.seq) THEN 1 ELSE 0 END AS has_trajectory`;
const siblingRows = `batch_groups g JOIN siblings s ON s.group_seq = g.seq JOIN rollouts r ON r.seq = s.seq`;
const byEnding = 'ORDER BY g.seq, r.ended_at IS NULL, r.ended_at, r.seq';

export async function openGroups(transaction: Transaction, batch: BatchId): Promise<OpenGroup[]> {
  const where = "WHERE g.state = 'open' AND g.batch_seq = (SELECT seq FROM batches WHERE id = ?)";
  return toGroups(await transaction.all<SiblingRow>(`SELECT ${siblingColumns} FROM ${siblingRows} ${where} ${byEnding}`, batch));
}

export async function surplusGroups(
  transaction: Transaction,
  request: { readonly batch: BatchId; readonly limit: number },
): Promise<SurplusGroup[]> {
  const where = `WHERE g.state = 'surplus' AND g.batch_seq IN (SELECT before.seq FROM batches AS mine JOIN batches AS before USING (series)
    WHERE mine.id = ? AND before.seq <> mine.seq AND before.state <> 'open' AND before.recipe = mine.recipe)`;
  const sql = `SELECT ${siblingColumns} FROM ${siblingRows} ${where} ${byEnding}`;
  const groups = toGroups(await transaction.all<SiblingRow>(sql, request.batch));
  const worth = ({ siblings }: OpenGroup) => siblings.filter(({ reward, state }) => reward !== undefined || state === 'run').length;
  const best = groups.toSorted((a, b) => worth(b) - worth(a)).slice(0, request.limit);
  return await Array.fromAsync(best, async (group) => ({ ...group, task: (await groupTask(transaction, group.id)) ?? {} }));
}

function toGroups(rows: readonly SiblingRow[]): OpenGroup[] {
  return [...Map.groupBy(rows, ({ group_id }) => group_id)].flatMap(([id, siblings]) => {
    const [first] = siblings;
    if (!first) return [];
    const { task_index: taskIndex, replacements, group_created_at: createdAtMs } = first;
    return [{ id, taskIndex, replacements, createdAtMs, siblings: siblings.map(toSibling) }];
  });
}

/** A reward counts only if the rollout is done. */
function toSibling(row: SiblingRow): Sibling {
  return {
    id: row.id,
    state: row.state,
    stopping: row.cancel_asked === 1,
    hasTrajectory: row.has_trajectory === 1,
    ...definedOf({
      reward: row.state === 'done' ? (row.reward ?? undefined) : undefined,
      firstVersion: row.first_version ?? undefined,
      failure: row.failure === null ? undefined : JSON.parse(row.failure),
    }),
  };
}

export async function queuedTasks(
  transaction: Transaction,
  request: { readonly batch: BatchId; readonly limit: number },
): Promise<{ taskIndex: number; task: Task }[]> {
  const sql = `SELECT task_index, body FROM batch_tasks JOIN batches ON batches.seq = batch_seq
    WHERE batches.id = ? AND n >= taken ORDER BY n LIMIT ?`;
  const rows = await transaction.all<{ task_index: number; body: string }>(sql, request.batch, request.limit);
  return rows.map(({ task_index, body }) => ({ taskIndex: task_index, task: JSON.parse(body) }));
}

export async function groupTask(transaction: Transaction, id: GroupId): Promise<Task | undefined> {
  const row = await transaction.one<{ task: string }>('SELECT task FROM batch_groups WHERE id = ?', id);
  return row && JSON.parse(row.task);
}
