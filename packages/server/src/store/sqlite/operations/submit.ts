// What callers change: submitting and cancelling rollouts.

import { type GroupId, isTerminal, type RolloutId, type RolloutState } from '@millrace/protocol';
import type { SubmitOutcome } from '../../store.ts';
import type { Session } from '../engine/session.ts';
import { appendEvent } from './events.ts';
import { appendEnded, appendQueued, end, type RolloutRow, rolloutColumns } from './transitions.ts';

export interface StoredSubmission {
  readonly id: RolloutId;
  readonly digest: string;
  readonly scenario: string;
  readonly group?: GroupId;
  /** The submission as JSON. */
  readonly body: string;
}

interface Submitted {
  readonly digest: string;
  readonly state: RolloutState;
}

export function submit(
  session: Session,
  request: { readonly rollouts: readonly StoredSubmission[]; readonly maxQueued: number },
): SubmitOutcome {
  const known = new Map<RolloutId, Submitted>();
  const fresh = new Map<RolloutId, StoredSubmission & { readonly state: RolloutState }>();
  const conflicts = new Set<RolloutId>();
  for (const rollout of request.rollouts) {
    const earlier = fresh.get(rollout.id) ?? known.get(rollout.id) ?? readSubmitted(session, rollout.id);
    if (!earlier) fresh.set(rollout.id, { ...rollout, state: hasTombstone(session, rollout.id) ? 'cancelled' : 'queued' });
    else if (earlier.digest !== rollout.digest) conflicts.add(rollout.id);
    else if (!fresh.has(rollout.id)) known.set(rollout.id, earlier);
  }
  if (conflicts.size > 0) return { kind: 'conflict', ids: [...conflicts] };
  const added = [...fresh.values()].filter((rollout) => rollout.state === 'queued').length;
  const queued = countQueued(session);
  if (added > 0 && queued + added > request.maxQueued) return { kind: 'full', queued };
  const created = new Set(fresh.keys());
  const rollouts = request.rollouts.map(({ id }) => {
    const state = fresh.get(id)?.state ?? known.get(id)?.state ?? 'queued';
    return { id, state, created: created.delete(id) };
  });
  for (const rollout of fresh.values()) insertRollout(session, rollout);
  return { kind: 'accepted', rollouts };
}

export function cancel(
  session: Session,
  request: { readonly id: RolloutId; readonly tombstoneMs: number },
): 'cancelled' | 'asked' | 'ended' {
  const row = session.one<RolloutRow>(`SELECT ${rolloutColumns} FROM rollouts WHERE id = ?`, request.id);
  if (!row) {
    const sql = 'INSERT INTO tombstones (id, until) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET until = excluded.until';
    session.run(sql, request.id, session.nowMs + request.tombstoneMs);
    return 'cancelled';
  }
  if (isTerminal(row.state)) return 'ended';
  if (row.state === 'queued') {
    end(session, row, { state: 'cancelled' });
    return 'cancelled';
  }
  if (!row.cancel_asked) {
    session.run('UPDATE rollouts SET cancel_asked = 1 WHERE seq = ?', row.seq);
    appendEvent(session, {
      kind: 'rollout-cancel',
      rolloutId: row.id,
      ...(row.group_id ? { group: row.group_id } : {}),
      ...(row.worker ? { workerId: row.worker } : {}),
      data: { state: row.state, attempt: row.attempt },
    });
  }
  return 'asked';
}

function readSubmitted(session: Session, id: RolloutId): Submitted | undefined {
  return session.one<Submitted>('SELECT digest, state FROM rollouts WHERE id = ?', id);
}

function hasTombstone(session: Session, id: RolloutId): boolean {
  return session.one('SELECT id FROM tombstones WHERE id = ? AND until > ?', id, session.nowMs) !== undefined;
}

function countQueued(session: Session): number {
  return session.one<{ n: number }>("SELECT count(*) AS n FROM rollouts WHERE state = 'queued'")?.n ?? 0;
}

/** Answers its row. */
export function insertRollout(session: Session, rollout: StoredSubmission & { readonly state: RolloutState }): number {
  const { nowMs } = session;
  const { id, scenario, state } = rollout;
  const group = rollout.group ?? null;
  const sql = `INSERT INTO rollouts (id, digest, scenario, group_id, state, created_at, queued_at, not_before, ended_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`;
  const endedAt = state === 'cancelled' ? nowMs : null;
  const row = session.one<{ seq: number }>(sql, id, rollout.digest, scenario, group, state, nowMs, nowMs, nowMs, endedAt);
  const seq = row?.seq ?? 0;
  session.run('INSERT INTO submissions (seq, body) VALUES (?, ?)', seq, rollout.body);
  const told = { id, scenario, group_id: group, attempt: 0, worker: null };
  if (state === 'cancelled') appendEnded(session, told, { state });
  else appendQueued(session, told, 'submit');
  return seq;
}
