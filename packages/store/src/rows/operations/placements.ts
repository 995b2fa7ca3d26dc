// Which rollout runs on which backend. Rollouts in flight are counted in the placing transaction, from the rows or from totals that
// change with them, so any number of workers balance like one, and a worker that dies leaves no stale count behind.

import type { BackendId, BackendState, RolloutId, WorkerId } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import type { BackendLoad, CacheSize, OldestOn, PlaceOptions } from '../../backends/placements.ts';
import { type Candidate, chooseBackend } from '../../backends/routing.ts';
import type { Claim } from '../../claim.ts';
import type { Repeat, TrafficNotes } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';
import { advance, mayBeIn, type RolloutRow, readHeld, subjectOf } from './transitions.ts';

interface Target extends Candidate {
  readonly version: number;
}

/** The backends that have rollouts in flight; in a transaction that has locked the backends, as all others left them. */
type ReadLoads = (transaction: Transaction) => Promise<BackendLoad[]>;

export async function place(
  transaction: Transaction,
  request: { readonly claim: Claim; readonly options: PlaceOptions } & Repeat,
  readLoads: ReadLoads = backendLoads,
): Promise<BackendId | undefined> {
  const { exclude = [], isSticky = false, tokens, routing } = request.options;
  const row = await readHeld(transaction, request.claim);
  if (!row || !mayBeIn(transaction, row, 'run')) return undefined;
  if (row.state !== 'run') await advance(transaction, row, { state: 'run', claim: request.claim });
  const from =
    (await transaction.one<{ backend: BackendId | null }>('SELECT backend FROM rollouts WHERE seq = ?', row.seq))?.backend ?? undefined;
  const chosen = chooseBackend(await readTargets(transaction, row, { from, isSticky, readLoads }), {
    exclude,
    ...definedOf({ current: isSticky ? from : undefined, routing }),
  });
  if (!chosen) return undefined;
  const sql = 'UPDATE rollouts SET backend = ?, backend_version = ?, context_tokens = coalesce(?, context_tokens) WHERE seq = ?';
  await transaction.run(sql, chosen.id, chosen.version, tokens ?? null, row.seq);
  if (from !== undefined && from !== chosen.id) {
    const data = { from, to: chosen.id };
    await transaction.appendEvent({ kind: 'rollout-place', ...subjectOf(row), backendId: chosen.id, data });
  }
  return chosen.id;
}

interface CurrentPlacement {
  readonly from: BackendId | undefined;
  readonly isSticky: boolean;
  readonly readLoads: ReadLoads;
}

/**
 * Backends that may take the rollout: up and broken neither for all nor for its machine, or draining if it already runs there. Its own
 * load is not counted.
 */
async function readTargets(transaction: Transaction, row: RolloutRow, { from, isSticky, readLoads }: CurrentPlacement): Promise<Target[]> {
  const faults = 'SELECT backend FROM backend_faults WHERE machine = (SELECT host FROM workers WHERE workers.id = ?)';
  const sql = `SELECT id, state, policy_version AS version FROM backends WHERE broken_at IS NULL AND id NOT IN (${faults})
    ORDER BY id FOR UPDATE`;
  await transaction.lock('place'); // one line for all that place, instead of one for each backend
  const known = await transaction.all<{ id: BackendId; state: BackendState; version: number }>(sql, row.worker);
  const loads = new Map((await readLoads(transaction)).map((load) => [load.id, load]));
  const siblings = await readSiblings(transaction, row);
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
async function readSiblings(transaction: Transaction, { seq, group_id }: RolloutRow): Promise<Map<BackendId, number>> {
  if (group_id === null) return new Map();
  const sql = `SELECT rollouts.backend AS id, count(*) AS n FROM rollouts JOIN backends ON backends.id = rollouts.backend
    WHERE group_id = ? AND seq <> ? AND (rollouts.state = 'run' OR backend_version = policy_version) GROUP BY rollouts.backend`;
  return new Map((await transaction.all<{ id: BackendId; n: number }>(sql, group_id, seq)).map(({ id, n }) => [id, n]));
}

export async function backendLoads(transaction: Transaction): Promise<BackendLoad[]> {
  const sql = `SELECT backend AS id, count(*) AS in_flight, sum(context_tokens) AS tokens FROM rollouts INDEXED BY rollouts_placed
    WHERE state = 'run' AND backend IS NOT NULL GROUP BY backend`;
  return (await transaction.all<LoadRow>(sql)).map(toLoad);
}

/** The first is one of them even if it does not fit. */
export async function oldestOn(
  transaction: Transaction,
  { worker, caches }: { readonly worker: WorkerId; readonly caches: readonly CacheSize[] },
): Promise<OldestOn[]> {
  const placed = `SELECT id, worker, context_tokens, sum(context_tokens) OVER (ORDER BY seq) AS until FROM rollouts
    WHERE state = 'run' AND backend = ?`;
  const sql = `SELECT id FROM (${placed}) AS placed WHERE worker = ? AND (until <= ? OR until = context_tokens) ORDER BY id`;
  return await Array.fromAsync(caches, async ({ id, tokens }) => {
    const rows = await transaction.all<{ id: RolloutId }>(sql, id, worker, tokens);
    return { id, rollouts: rows.map((row) => row.id) };
  });
}

export interface LoadRow {
  readonly id: BackendId;
  readonly in_flight: number;
  readonly tokens: number;
}

export function toLoad({ id, in_flight: inFlight, tokens }: LoadRow): BackendLoad {
  return { id, inFlight, tokens };
}

export async function noteTraffic(transaction: Transaction, { contexts, errors }: TrafficNotes): Promise<void> {
  const grown = 'UPDATE rollouts SET context_tokens = ? WHERE id = ? AND worker = ? AND attempt = ?';
  for (const { claim, tokens } of contexts) await transaction.run(grown, tokens, claim.id, claim.worker, claim.attempt);
  await noteErrors(transaction, errors);
}

export async function noteErrors(transaction: Transaction, errors: TrafficNotes['errors']): Promise<void> {
  const failed = 'UPDATE backends SET error = ?, error_at = ? WHERE id = ?';
  for (const { backend, message } of errors) await transaction.run(failed, message, transaction.nowMs, backend);
}
