// Which rollout runs on which backend, and which backends are broken. Rollouts in flight are counted from the rows in the placing
// transaction, so any number of workers balance like one, and a worker that dies leaves no stale count behind.

import { type BackendId, type BackendState, definedOf } from '@millrace/protocol';
import type { BackendProbe } from '../../../inference/backends/backend.ts';
import { type BackendLoad, firstProbeMs, longestProbeMs, type PlaceOptions, probeTimeoutMs } from '../../../inference/pool/placements.ts';
import { type Candidate, chooseBackend } from '../../../inference/pool/routing.ts';
import type { Claim, TrafficNotes } from '../../store.ts';
import type { Transaction } from '../engine/connection.ts';
import { appendEvent } from './events.ts';
import { type RolloutRow, readHeld, subjectOf } from './transitions.ts';

interface Target extends Candidate {
  readonly version: number;
}

export function place(transaction: Transaction, request: { readonly claim: Claim; readonly options: PlaceOptions }): BackendId | undefined {
  const { exclude = [], isSticky = false, tokens, routing } = request.options;
  const row = readHeld(transaction, request.claim);
  if (row?.state !== 'run') return undefined;
  const from = transaction.one<{ backend: BackendId | null }>('SELECT backend FROM rollouts WHERE seq = ?', row.seq)?.backend ?? undefined;
  const chosen = chooseBackend(readTargets(transaction, row, { from, isSticky }), {
    exclude,
    ...definedOf({ current: isSticky ? from : undefined, routing }),
  });
  if (!chosen) return undefined;
  const sql = 'UPDATE rollouts SET backend = ?, backend_version = ?, context_tokens = coalesce(?, context_tokens) WHERE seq = ?';
  transaction.run(sql, chosen.id, chosen.version, tokens ?? null, row.seq);
  if (from !== undefined && from !== chosen.id) {
    const data = { from, to: chosen.id };
    appendEvent(transaction, { kind: 'rollout-place', ...subjectOf(row), backendId: chosen.id, data });
  }
  return chosen.id;
}

interface CurrentPlacement {
  readonly from: BackendId | undefined;
  readonly isSticky: boolean;
}

/** Backends that may take the rollout: up and not broken, or draining if it already runs there. Its own load is not counted. */
function readTargets(transaction: Transaction, row: RolloutRow, { from, isSticky }: CurrentPlacement): Target[] {
  const sql = 'SELECT id, state, policy_version AS version FROM backends WHERE broken_at IS NULL ORDER BY id';
  const known = transaction.all<{ id: BackendId; state: BackendState; version: number }>(sql);
  const loads = new Map(backendLoads(transaction).map((load) => [load.id, load]));
  const siblings = readSiblings(transaction, row);
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

/** New weights empty a backend's cache: siblings that ended before left nothing there, running ones have their prompt cached again. */
function readSiblings(transaction: Transaction, { seq, group_id }: RolloutRow): Map<BackendId, number> {
  if (group_id === null) return new Map();
  const sql = `SELECT rollouts.backend AS id, count(*) AS n FROM rollouts JOIN backends ON backends.id = rollouts.backend
    WHERE group_id = ? AND seq <> ? AND (rollouts.state = 'run' OR backend_version = policy_version) GROUP BY rollouts.backend`;
  return new Map(transaction.all<{ id: BackendId; n: number }>(sql, group_id, seq).map(({ id, n }) => [id, n]));
}

export function backendLoads(transaction: Transaction): BackendLoad[] {
  const sql = `SELECT backend AS id, count(*) AS inFlight, sum(context_tokens) AS tokens FROM rollouts INDEXED BY rollouts_placed
    WHERE state = 'run' AND backend IS NOT NULL GROUP BY backend`;
  return transaction.all<BackendLoad>(sql).map(({ id, inFlight, tokens }) => ({ id, inFlight, tokens }));
}

export function breakBackend(
  transaction: Transaction,
  request: { readonly id: BackendId; readonly error: string; readonly isProbe?: boolean },
): void {
  const { id, error, isProbe = false } = request;
  const { nowMs } = transaction;
  const row = transaction.one<HealthRow>('SELECT broken_at, probes, probe_at FROM backends WHERE id = ?', id);
  if (!row || (row.broken_at === null) === isProbe) return;
  const waitMs = Math.min(firstProbeMs * 2 ** row.probes, longestProbeMs);
  const sql = 'UPDATE backends SET broken_at = ?, probes = ?, probe_at = ?, error = ?, error_at = ? WHERE id = ?';
  transaction.run(sql, row.broken_at ?? nowMs, row.probes + 1, nowMs + waitMs, error, nowMs, id);
  if (!isProbe) appendEvent(transaction, { kind: 'backend-break', backendId: id, data: { error } });
}

export function recoverBackend(transaction: Transaction, id: BackendId): void {
  const row = transaction.one<HealthRow>('SELECT broken_at, probes, probe_at FROM backends WHERE id = ?', id);
  if (!row || row.broken_at === null) return;
  transaction.run('UPDATE backends SET broken_at = NULL, probes = 0, probe_at = 0 WHERE id = ?', id);
  appendEvent(transaction, { kind: 'backend-recovered', backendId: id, data: { broken_ms: transaction.nowMs - row.broken_at } });
}

export function noteProbe(transaction: Transaction, { id, probe }: { readonly id: BackendId; readonly probe: BackendProbe }): void {
  // A whole probe replaces what was known: the server may have been restarted with other flags. A call adds what it found.
  const isWhole = probe.atMs !== undefined;
  const sql = `UPDATE backends SET probe = ${isWhole ? '?' : "json_patch(coalesce(probe, '{}'), ?)"} WHERE id = ?`;
  transaction.run(sql, JSON.stringify(probe), id);
}

/** Postpones the next probe for as long as this one may take, so that only one worker probes at a time. */
export function takeProbe(transaction: Transaction, id: BackendId): number | undefined {
  const row = transaction.one<HealthRow>('SELECT broken_at, probes, probe_at FROM backends WHERE id = ?', id);
  if (!row || row.broken_at === null) return undefined;
  const waitMs = row.probe_at - transaction.nowMs;
  // A probe that is further away than any can be was planned by a clock that was ahead.
  if (waitMs > 0 && waitMs <= Math.max(longestProbeMs, probeTimeoutMs + firstProbeMs)) return waitMs;
  transaction.run('UPDATE backends SET probe_at = ? WHERE id = ?', transaction.nowMs + probeTimeoutMs + firstProbeMs, id);
  return 0;
}

interface HealthRow {
  readonly broken_at: number | null;
  readonly probes: number;
  readonly probe_at: number;
}

export function noteTraffic(transaction: Transaction, { contexts, errors }: TrafficNotes): void {
  const grown = 'UPDATE rollouts SET context_tokens = ? WHERE id = ? AND worker = ? AND attempt = ?';
  for (const { claim, tokens } of contexts) transaction.run(grown, tokens, claim.id, claim.worker, claim.attempt);
  const failed = 'UPDATE backends SET error = ?, error_at = ? WHERE id = ?';
  for (const { backend, message } of errors) transaction.run(failed, message, transaction.nowMs, backend);
}
