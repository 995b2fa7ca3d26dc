// Which rollout runs on which backend, and which backends are broken. What is in flight is counted from the rows in the
// transaction that places one more, so any number of workers balance like one, and a worker that dies leaves no count behind.

import type { BackendId, BackendState } from '@millrace/protocol';
import { type BackendLoad, firstProbeMs, longestProbeMs, type PlaceOptions, probeTimeoutMs } from '../../../inference/pool/placements.ts';
import { type Candidate, chooseBackend } from '../../../inference/pool/routing.ts';
import type { Claim, TrafficNotes } from '../../store.ts';
import type { Session } from '../engine/session.ts';
import { appendEvent } from './events.ts';
import { type RolloutRow, readHeld } from './transitions.ts';

interface Target extends Candidate {
  readonly version: number;
}

export function place(session: Session, request: { readonly claim: Claim; readonly options: PlaceOptions }): BackendId | undefined {
  const { exclude = [], isSticky = false, tokens, routing } = request.options;
  const row = readHeld(session, request.claim);
  if (row?.state !== 'run') return undefined;
  const from = session.one<{ backend: BackendId | null }>('SELECT backend FROM rollouts WHERE seq = ?', row.seq)?.backend ?? undefined;
  const chosen = chooseBackend(readTargets(session, row, { from, isSticky }), {
    exclude,
    ...(isSticky && from !== undefined ? { current: from } : {}),
    ...(routing ? { routing } : {}),
  });
  if (!chosen) return undefined;
  const sql = 'UPDATE rollouts SET backend = ?, backend_version = ?, context_tokens = coalesce(?, context_tokens) WHERE seq = ?';
  session.run(sql, chosen.id, chosen.version, tokens ?? null, row.seq);
  if (from !== undefined && from !== chosen.id) {
    const { id: rolloutId, group_id } = row;
    const data = { from, to: chosen.id };
    appendEvent(session, { kind: 'rollout-place', rolloutId, ...(group_id ? { group: group_id } : {}), backendId: chosen.id, data });
  }
  return chosen.id;
}

interface Standing {
  readonly from: BackendId | undefined;
  readonly isSticky: boolean;
}

/** Those that may take the rollout: up and not broken, and to stay there also one that drains. Its own weight is left out. */
function readTargets(session: Session, row: RolloutRow, { from, isSticky }: Standing): Target[] {
  const sql = 'SELECT id, state, policy_version AS version FROM backends WHERE broken_at IS NULL ORDER BY id';
  const known = session.all<{ id: BackendId; state: BackendState; version: number }>(sql);
  const loads = new Map(backendLoads(session).map((load) => [load.id, load]));
  const siblings = readSiblings(session, row);
  return known
    .filter(({ id, state }) => state === 'up' || (isSticky && id === from))
    .map(({ id, version }) => ({
      id,
      version,
      inFlight: (loads.get(id)?.inFlight ?? 0) - (id === from ? 1 : 0),
      tokens: loads.get(id)?.tokens ?? 0,
      siblings: siblings.get(id) ?? 0,
    }));
}

/** New weights empty a backend's cache: who ran there before left nothing, who runs there still has its prompt in it again. */
function readSiblings(session: Session, { seq, group_id }: RolloutRow): Map<BackendId, number> {
  if (group_id === null) return new Map();
  const sql = `SELECT rollouts.backend AS id, count(*) AS n FROM rollouts JOIN backends ON backends.id = rollouts.backend
    WHERE group_id = ? AND seq <> ? AND (rollouts.state = 'run' OR backend_version = policy_version) GROUP BY rollouts.backend`;
  return new Map(session.all<{ id: BackendId; n: number }>(sql, group_id, seq).map(({ id, n }) => [id, n]));
}

export function backendLoads(session: Session): BackendLoad[] {
  const sql = `SELECT backend AS id, count(*) AS inFlight, sum(context_tokens) AS tokens FROM rollouts INDEXED BY rollouts_placed
    WHERE state = 'run' AND backend IS NOT NULL GROUP BY backend`;
  return session.all<BackendLoad>(sql).map(({ id, inFlight, tokens }) => ({ id, inFlight, tokens }));
}

export function breakBackend(
  session: Session,
  request: { readonly id: BackendId; readonly error: string; readonly isProbe?: boolean },
): void {
  const { id, error, isProbe = false } = request;
  const { nowMs } = session;
  const row = session.one<HealthRow>('SELECT broken_at, probes, probe_at FROM backends WHERE id = ?', id);
  if (!row || (row.broken_at === null) === isProbe) return;
  const waitMs = Math.min(firstProbeMs * 2 ** row.probes, longestProbeMs);
  const sql = 'UPDATE backends SET broken_at = ?, probes = ?, probe_at = ?, error = ?, error_at = ? WHERE id = ?';
  session.run(sql, row.broken_at ?? nowMs, row.probes + 1, nowMs + waitMs, error, nowMs, id);
  if (!isProbe) appendEvent(session, { kind: 'backend-break', backendId: id, data: { error } });
}

export function recoverBackend(session: Session, id: BackendId): void {
  const row = session.one<HealthRow>('SELECT broken_at, probes, probe_at FROM backends WHERE id = ?', id);
  if (!row || row.broken_at === null) return;
  session.run('UPDATE backends SET broken_at = NULL, probes = 0, probe_at = 0 WHERE id = ?', id);
  appendEvent(session, { kind: 'backend-recovered', backendId: id, data: { broken_ms: session.nowMs - row.broken_at } });
}

/** The time of the next probe is put off while this one may take, so that one worker at a time asks. */
export function takeProbe(session: Session, id: BackendId): number | undefined {
  const row = session.one<HealthRow>('SELECT broken_at, probes, probe_at FROM backends WHERE id = ?', id);
  if (!row || row.broken_at === null) return undefined;
  if (row.probe_at > session.nowMs) return row.probe_at - session.nowMs;
  session.run('UPDATE backends SET probe_at = ? WHERE id = ?', session.nowMs + probeTimeoutMs + firstProbeMs, id);
  return 0;
}

interface HealthRow {
  readonly broken_at: number | null;
  readonly probes: number;
  readonly probe_at: number;
}

export function noteTraffic(session: Session, { contexts, errors }: TrafficNotes): void {
  const grown = 'UPDATE rollouts SET context_tokens = ? WHERE id = ? AND worker = ? AND attempt = ?';
  for (const { claim, tokens } of contexts) session.run(grown, tokens, claim.id, claim.worker, claim.attempt);
  const failed = 'UPDATE backends SET error = ?, error_at = ? WHERE id = ?';
  for (const { backend, message } of errors) session.run(failed, message, session.nowMs, backend);
}
