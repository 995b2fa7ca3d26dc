// What callers change: submitting and cancelling rollouts.

import type { ForkOrigin, GroupId, MachineLabels, RolloutId, RolloutState } from '@millrace/protocol';
import { definedOf, isTerminal, RolloutError } from '@millrace/protocol/plain';
import { toFullMessage } from '../../disk-budget.ts';
import type { SubmitOutcome } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import { plainClass, rankOf, toStoredName, type WorkClass } from '../../work-class.ts';
import { addDates } from './batch/group-date.ts';
import { toStoredBody } from './batch/group-task.ts';
import { openClass } from './classes.ts';
import { countStates } from './queries.ts';
import { appendEnded, appendQueued, end, type RolloutRow, rolloutColumns, subjectOf } from './transitions.ts';
import { shareTurns } from './turn-log.ts';

export interface StoredSubmission {
  readonly id: RolloutId;
  readonly digest: string;
  readonly scenario: string;
  readonly group?: GroupId;
  readonly priority?: number;
  readonly requires?: MachineLabels;
  /** As the caller gave it, or as its body has it already. */
  readonly date?: string;
  /** Of a fork. */
  readonly fork?: ForkOrigin;
  /** The submission as JSON, without its task. */
  readonly body: string;
  /** The task as JSON. */
  readonly task: string;
}

/** Set while the store is full: what is known is answered as usual, and what is new is refused. */
export interface RefusesNew {
  readonly full?: string | undefined;
}

export function refuseIfFull({ full }: RefusesNew): void {
  if (full !== undefined) throw new RolloutError('store-full', toFullMessage(full));
}

interface Submitted {
  readonly digest: string;
  readonly state: RolloutState;
}

export async function submit(
  transaction: Transaction,
  request: { readonly rollouts: readonly StoredSubmission[]; readonly maxQueued: number; readonly workClass?: WorkClass } & RefusesNew,
): Promise<SubmitOutcome> {
  await transaction.lock('submit');
  const known = new Map<RolloutId, Submitted>();
  const fresh = new Map<RolloutId, StoredSubmission & { readonly state: RolloutState }>();
  const conflicts = new Set<RolloutId>();
  const ids = [...new Set(request.rollouts.map(({ id }) => id))];
  const stored = await readSubmitted(transaction, ids);
  const cancelled = await readTombstones(transaction, ids);
  for (const rollout of request.rollouts) {
    const earlier = fresh.get(rollout.id) ?? stored.get(rollout.id);
    if (!earlier) fresh.set(rollout.id, { ...rollout, state: cancelled.has(rollout.id) ? 'cancelled' : 'queued' });
    else if (earlier.digest !== rollout.digest) conflicts.add(rollout.id);
    else if (!fresh.has(rollout.id)) known.set(rollout.id, earlier);
  }
  if (conflicts.size > 0) return { kind: 'conflict', ids: [...conflicts] };
  const queuing = [...fresh.values()].filter((rollout) => rollout.state === 'queued').length;
  const { queued } = await countStates(transaction);
  if (queuing > 0 && queued + queuing > request.maxQueued) return { kind: 'full', queued };
  if (fresh.size > 0) refuseIfFull(request);
  const created = new Set(fresh.keys());
  const rollouts = request.rollouts.map(({ id }) => {
    const state = fresh.get(id)?.state ?? known.get(id)?.state ?? 'queued';
    return { id, state, created: created.delete(id) };
  });
  const classOf = openClasses(transaction, request.workClass ?? plainClass);
  const added = await Array.fromAsync(fresh.values(), async (rollout) => ({ ...rollout, class: await classOf(rollout), isSibling: false }));
  const seqs = await insertRollouts(transaction, added);
  for (const [index, { fork, state }] of added.entries())
    if (fork && state === 'queued') await shareTurns(transaction, seqs[index] ?? 0, fork);
  return { kind: 'accepted', rollouts };
}

export async function cancel(
  transaction: Transaction,
  request: { readonly id: RolloutId; readonly tombstoneMs: number },
): Promise<'cancelled' | 'asked' | 'ended'> {
  let row = await lockRollout(transaction, request.id);
  if (!row) {
    // It may be arriving in another transaction, which has not seen the tombstone.
    await transaction.lock('submit');
    row = await lockRollout(transaction, request.id);
  }
  if (!row) {
    const sql = 'INSERT INTO tombstones (id, until) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET until = excluded.until';
    await transaction.run(sql, request.id, transaction.nowMs + request.tombstoneMs);
    return 'cancelled';
  }
  if (isTerminal(row.state)) return 'ended';
  if (row.state === 'queued') {
    await end(transaction, row, { state: 'cancelled' });
    return 'cancelled';
  }
  if (!row.cancel_asked) {
    await transaction.run('UPDATE rollouts SET cancel_asked = 1 WHERE seq = ?', row.seq);
    const data = { state: row.state, attempt: row.attempt };
    await transaction.appendEvent({ kind: 'rollout-cancel', ...subjectOf(row), ...definedOf({ workerId: row.worker ?? undefined }), data });
  }
  return 'asked';
}

async function lockRollout(transaction: Transaction, id: RolloutId): Promise<RolloutRow | undefined> {
  return await transaction.one<RolloutRow>(`SELECT ${rolloutColumns} FROM rollouts WHERE id = ? FOR UPDATE`, id);
}

async function readSubmitted(transaction: Transaction, ids: readonly RolloutId[]): Promise<Map<RolloutId, Submitted>> {
  const rows = await transaction.allOf<Submitted & { readonly id: RolloutId }>('SELECT id, digest, state FROM rollouts WHERE id = ?', ids);
  return new Map(rows.map((row) => [row.id, row]));
}

async function readTombstones(transaction: Transaction, ids: readonly RolloutId[]): Promise<Set<RolloutId>> {
  const rows = await transaction.allOf<{ id: RolloutId; until: number }>('SELECT id, until FROM tombstones WHERE id = ?', ids);
  return new Set(rows.filter(({ until }) => until > transaction.nowMs).map(({ id }) => id));
}

/** Finds the class of each rollout by its priority and what it requires. */
function openClasses(transaction: Transaction, workClass: WorkClass): (rollout: StoredSubmission) => Promise<number> {
  const opened = new Map<string, number>();
  return async ({ priority = 0, requires }) => {
    const own = { ...workClass, requires };
    const key = `${priority} ${toStoredName(own)}`;
    const known = opened.get(key) ?? (await openClass(transaction, own, rankOf({ priority })));
    opened.set(key, known);
    return known;
  };
}

interface InsertedRollout extends StoredSubmission {
  readonly state: RolloutState;
  readonly class: number;
  readonly isSibling: boolean;
  /** The task of its group, which is stored once for all siblings. */
  readonly groupTask?: string;
}

const rolloutRow = 'rollouts (id, digest, scenario, group_id, state, class, is_sibling, created_at, queued_at, not_before, ended_at)';

/** Returns the `seq` of their rows. */
export async function insertRollouts(transaction: Transaction, rollouts: readonly InsertedRollout[]): Promise<number[]> {
  const { nowMs } = transaction;
  const rows = rollouts.map(({ id, digest, scenario, group = null, state, class: own, isSibling }) => {
    const endedAt = state === 'cancelled' ? nowMs : null;
    return [id, digest, scenario, group, state, own, Number(isSibling), nowMs, nowMs, nowMs, endedAt];
  });
  const bodies = await addDates(transaction, rollouts);
  const seqs = await transaction.insertNumbered(rolloutRow, rows);
  await transaction.insert(
    'submissions (seq, body)',
    rollouts.map((rollout, index) => [seqs[index] ?? 0, toStoredBody({ ...rollout, body: bodies[index] ?? rollout.body })]),
  );
  for (const { id, scenario, group, state } of rollouts) {
    const inserted = { id, scenario, group_id: group ?? null, attempt: 0, worker: null };
    if (state === 'cancelled') await appendEnded(transaction, inserted, { state });
    else await appendQueued(transaction, inserted, 'submit');
  }
  return seqs;
}
