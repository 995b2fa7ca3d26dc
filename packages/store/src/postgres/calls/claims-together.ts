// The claims of many workers as a few statements: whose turn it is, is decided once for all of them, in the order in which they came. With
// several machines, each gets from the head of a class what belongs to its groups first. A claim that needs more than this runs alone.

import type { MachineLabels, WorkerId } from '@millrace/protocol';
import { longestPassMs } from '../../claim.ts';
import { groupTaskColumn, toSubmission } from '../../rows/operations/batch/group-task.ts';
import { type ClaimRequest, type QueuedRow, toClaimed } from '../../rows/operations/claims.ts';
import { wakeDelayed } from '../../rows/operations/classes.ts';
import { appendMoved, toMove } from '../../rows/operations/transitions.ts';
import type { ClaimedRollout } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import { fromStoredName, hasLabels } from '../../work-class.ts';
import { chooseRows, type HeadRow, windowSize } from './choose-rows.ts';
import { dueClassesSql, mostClasses } from './claim.ts';
import { type DueClass, divideTurns } from './divide-turns.ts';

type NamedClass = DueClass & { readonly name: string };

interface Claimer {
  readonly worker: WorkerId;
  /** If there are workers on other machines too. */
  readonly host: string | undefined;
  readonly labels: MachineLabels;
  left: number;
  readonly claimed: ClaimedRollout[];
}

/** In the order of the requests; undefined for one that has to run alone. */
export async function claimTogether(
  transaction: Transaction,
  requests: readonly ClaimRequest[],
): Promise<(readonly ClaimedRollout[] | undefined)[]> {
  const workers = await lockWorkers(
    transaction,
    requests.map(({ worker }) => worker),
  );
  await wakeDelayed(transaction);
  const hasSuspect = await transaction.one(suspectSql);
  if (hasSuspect || [...workers.values()].some(({ quarantine }) => quarantine === 1)) return requests.map(() => undefined);
  const claimers = requests.map(({ worker, limit, labels }): Claimer => {
    const known = workers.get(worker);
    return { worker, labels, host: known?.preferring_host ?? undefined, left: known ? limit : 0, claimed: [] };
  });
  const due = await transaction.all<NamedClass>(dueClassesSql, mostClasses);
  for (const some of groupByLabels(claimers).values()) await serve(transaction, some, due);
  return claimers.map(({ claimed }) => claimed);
}

const suspectSql = "SELECT 1 AS found FROM rollouts WHERE state = 'queued' AND line = 'suspect' LIMIT 1";

interface ClaimerRow {
  readonly id: WorkerId;
  readonly quarantine: number;
  readonly preferring_host: string | null;
}

async function lockWorkers(transaction: Transaction, ids: readonly WorkerId[]): Promise<Map<WorkerId, ClaimerRow>> {
  const sql = `SELECT id, quarantine, CASE WHEN EXISTS (SELECT 1 FROM workers other WHERE other.host <> workers.host AND other.ended_at IS NULL)
    THEN host END AS preferring_host FROM workers WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(?1 AS json))))
    AND ended_at IS NULL AND lease_until > ?2 ORDER BY id FOR UPDATE`;
  const rows = await transaction.all<ClaimerRow>(sql, JSON.stringify(ids), transaction.nowMs);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Nearly always all of them have the same. */
function groupByLabels(claimers: readonly Claimer[]): Map<string, Claimer[]> {
  const groups = new Map<string, Claimer[]>();
  for (const claimer of claimers) {
    const key = JSON.stringify(Object.entries(claimer.labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    groups.set(key, [...(groups.get(key) ?? []), claimer]);
  }
  return groups;
}

async function serve(transaction: Transaction, claimers: readonly Claimer[], due: readonly NamedClass[]): Promise<void> {
  const [first] = claimers;
  let classes = due.filter(({ name }) => hasLabels(first?.labels ?? {}, fromStoredName(name).requires));
  for (;;) {
    const wanting = claimers.flatMap((claimer) => Array.from({ length: claimer.left }, () => claimer));
    const turns = divideTurns(classes, wanting.length);
    if (turns.length === 0) return;
    const demands = new Map<number, Claimer[]>();
    for (const [index, seq] of turns.entries()) {
      const claimer = wanting[index];
      if (claimer) demands.set(seq, [...(demands.get(seq) ?? []), claimer]);
    }
    const empty = new Set<number>();
    for (const [seq, some] of demands) if (await serveClass(transaction, seq, some)) empty.add(seq);
    if (empty.size === 0) return;
    classes = classes.filter(({ seq }) => !empty.has(seq));
  }
}

/** Gives each claimer one rollout of the class. Whether the class has no more that another claim is not taking. */
async function serveClass(transaction: Transaction, own: number, demands: readonly Claimer[]): Promise<boolean> {
  const left = demands.some(({ host }) => host !== undefined) ? await servePreferred(transaction, own, demands) : [...demands];
  if (left.length === 0) return false;
  const sql = "SELECT seq FROM rollouts WHERE state = 'queued' AND line = 'due' AND class = ? ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED";
  const rows = await transaction.all<{ seq: number }>(sql, own, left.length);
  await take(
    transaction,
    rows.flatMap(({ seq }, index) => {
      const claimer = left[index];
      return claimer ? [{ seq, claimer }] : [];
    }),
  );
  return rows.length < left.length;
}

const headSql = `WITH head AS MATERIALIZED (
SELECT seq, group_id, passed_at FROM rollouts WHERE state = 'queued' AND line = 'due' AND class = ?1 ORDER BY seq LIMIT ?2
), homes AS MATERIALIZED (SELECT g.group_id, hosts FROM (SELECT DISTINCT group_id FROM head WHERE group_id IS NOT NULL) g, LATERAL (
SELECT json_agg(DISTINCT host) AS hosts FROM rollouts held JOIN workers w ON w.id = held.worker WHERE held.group_id = g.group_id) one)
SELECT seq, group_id, passed_at, hosts FROM head LEFT JOIN homes USING (group_id) ORDER BY seq`;

const passedSql = `UPDATE rollouts SET passed_at = ?1 WHERE seq IN (SELECT one.seq FROM json_array_elements_text(CAST(?2 AS json)) AS x (text), LATERAL (
  SELECT seq FROM rollouts WHERE rollouts.seq = x.text::bigint AND state = 'queued' AND line = 'due' FOR UPDATE SKIP LOCKED) AS one)`;

/** Returns those for whom another claim was faster. */
async function servePreferred(transaction: Transaction, own: number, demands: readonly Claimer[]): Promise<Claimer[]> {
  const head = await transaction.all<HeadRow>(headSql, own, windowSize + demands.length);
  const passedAt = transaction.nowMs - longestPassMs;
  const { chosen, passed } = chooseRows(head, { demands, passedAt });
  const taken = await take(transaction, chosen);
  if (passed.length > 0) await transaction.run(passedSql, transaction.nowMs, JSON.stringify(passed));
  const served = chosen.filter(({ seq }) => taken.has(seq)).map(({ claimer }) => claimer);
  return demands.filter((claimer) => {
    const at = served.indexOf(claimer);
    if (at >= 0) served.splice(at, 1);
    return at < 0;
  });
}

type TakenRow = QueuedRow & { readonly worker: WorkerId; readonly body: string; readonly group_task: string | null };

const takeSql = `WITH locked AS MATERIALIZED (SELECT one.seq, x.worker
  FROM json_to_recordset(CAST(?1 AS json)) AS x (seq bigint, worker text COLLATE "C"), LATERAL (SELECT seq FROM rollouts
    WHERE rollouts.seq = x.seq AND state = 'queued' AND line = 'due' FOR UPDATE SKIP LOCKED) AS one),
  taken AS (UPDATE rollouts SET state = 'init', worker = locked.worker, attempt = attempt + 1 FROM locked WHERE rollouts.seq = locked.seq
    RETURNING rollouts.*)
  SELECT rollouts.*, body, ${groupTaskColumn} FROM taken AS rollouts JOIN submissions ON submissions.seq = rollouts.seq`;

/** What no other claim is taking at this moment. Returns the rows that were taken. */
async function take(
  transaction: Transaction,
  wanted: readonly { readonly seq: number; readonly claimer: Claimer }[],
): Promise<Set<number>> {
  if (wanted.length === 0) return new Set();
  const asked = wanted.map(({ seq, claimer }) => ({ seq, worker: claimer.worker }));
  const rows = await transaction.all<TakenRow>(takeSql, JSON.stringify(asked));
  const bySeq = new Map(rows.map((row) => [row.seq, row]));
  for (const { seq, claimer } of wanted) {
    const row = bySeq.get(seq);
    if (!row) continue;
    const claim = { id: row.id, worker: claimer.worker, attempt: row.attempt };
    const before = { ...row, state: 'queued' as const };
    await transaction.noteMove(toMove(before, 'init'));
    await appendMoved(transaction, before, { state: 'init', claim });
    claimer.left -= 1;
    claimer.claimed.push(toClaimed(claim, row, toSubmission(row)));
  }
  return new Set(bySeq.keys());
}
