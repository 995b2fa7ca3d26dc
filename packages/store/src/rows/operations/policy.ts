// The policy: one row with its state and version, and the latest gate report of each worker. The state becomes `paused` only when
// every live worker has seen this pause and has no call in progress.

import type { PauseMode, PolicyState, WorkerId } from '@millrace/protocol';
import { definedOf, RolloutError } from '@millrace/protocol/plain';
import type { PolicyRecord, ResumePolicy } from '../../backends/policy-record.ts';
import type { Transaction } from '../../transaction.ts';
import { stateWeights } from './health/backend-identity.ts';

interface PolicyRow {
  readonly state: PolicyState;
  readonly mode: PauseMode | null;
  readonly pause: number;
  readonly flushes: number;
  readonly version: number;
  readonly since: number;
  readonly adapter: string | null;
  readonly cache_salt: string | null;
  readonly owner: string | null;
  /** The number of the pause that is the owner's; an owner of an earlier one has nothing to say. */
  readonly owned_pause: number | null;
}

export async function policy(transaction: Transaction): Promise<PolicyRecord> {
  const row = await readRow(transaction);
  const { state, mode, pause, flushes, version, since, adapter, cache_salt } = row;
  const sql = 'SELECT coalesce(sum(generating), 0) AS n FROM workers WHERE ended_at IS NULL';
  const generating = state === 'paused' ? 0 : ((await transaction.one<{ n: number }>(sql))?.n ?? 0);
  const optional = definedOf({
    mode: mode ?? undefined,
    owner: ownerOf(row),
    adapter: adapter ?? undefined,
    cacheSalt: cache_salt ?? undefined,
  });
  return { state, pause, flushes, policyVersion: version, generating, sinceMs: since, ...optional };
}

/** Writes a row and removes it, to find out whether the store can be written. SQLite would skip an update that changes nothing. */
export async function touch(transaction: Transaction): Promise<void> {
  await transaction.run("INSERT INTO tombstones (id, until) VALUES ('', 0) ON CONFLICT DO NOTHING");
  await transaction.run("DELETE FROM tombstones WHERE id = ''");
}

/** Pausing again can only make the mode stricter. */
export async function pausePolicy(
  transaction: Transaction,
  { mode, owner }: { readonly mode: PauseMode; readonly owner?: string },
): Promise<PolicyRecord> {
  const row = await lockPolicy(transaction);
  const isNew = row.state === 'running';
  if (owner !== undefined) refuseOther(row, owner);
  if (isNew || (mode === 'abort' && row.mode === 'wait')) {
    const state = isNew ? 'pausing' : row.state;
    const pause = row.pause + Number(isNew);
    const fresh = isNew ? { since: transaction.nowMs, owner: owner ?? null, owned_pause: owner === undefined ? null : pause } : {};
    await writeRow(transaction, { ...row, state, mode, pause, ...fresh });
    await transaction.appendEvent({ kind: 'policy-pause', data: { state, mode } });
    await settlePause(transaction);
  }
  return await policy(transaction);
}

/** Idempotent. Sets the version of all backends too. */
export async function resumePolicy(transaction: Transaction, request: ResumePolicy): Promise<PolicyRecord> {
  const row = await lockPolicy(transaction);
  const { policyVersion: version = row.version, cachesFlushed, allowLower = false, adapter = row.adapter } = request;
  if (version < row.version && !allowLower) {
    const message = `the policy is at version ${row.version}: it cannot be resumed at the older version ${version} without allow_lower`;
    throw new RolloutError('conflict', message);
  }
  if (!request.force) refuseOther(row, request.owner);
  const isChanged = version !== row.version || adapter !== row.adapter;
  if (row.state === 'running' && !isChanged) return await policy(transaction);
  if (request.policyVersion !== undefined) {
    await transaction.run('UPDATE backends SET policy_version = ?', version);
    await stateWeights(transaction);
  }
  const since = row.state === 'running' ? row.since : transaction.nowMs;
  const flushes = row.flushes + Number(cachesFlushed);
  const cache_salt = isChanged || cachesFlushed ? chooseSalt(row, request, version) : row.cache_salt;
  await writeRow(transaction, { ...row, state: 'running', mode: null, flushes, version, since, adapter, cache_salt });
  const data = { policy_version: version, caches_flushed: cachesFlushed, ...(adapter === null ? {} : { adapter }) };
  await transaction.appendEvent({ kind: 'policy-resume', data });
  return await policy(transaction);
}

/** The owner of the pause that is in force. */
function ownerOf({ state, pause, owner, owned_pause }: PolicyRow): string | undefined {
  return state !== 'running' && owned_pause === pause ? (owner ?? undefined) : undefined;
}

function refuseOther(row: PolicyRow, asking: string | undefined): void {
  const owner = ownerOf(row);
  if (owner === undefined || owner === asking) return;
  const message = `the policy is paused by ${owner}, and only ${owner} ends this pause; if it is gone, resume with force (millrace policy resume --force)`;
  throw new RolloutError('conflict', message);
}

/** With the number of the pause: a version that was lowered may be reached a second time, by other weights. */
function chooseSalt(row: PolicyRow, { cachesFlushed, saltCaches = true }: ResumePolicy, version: number): string | null {
  if (cachesFlushed) return null;
  return saltCaches ? `policy-${version}.${row.pause}` : row.cache_salt;
}

/** A backend that joins with newer weights raises the policy version. */
export async function raisePolicyVersion(transaction: Transaction, version: number): Promise<void> {
  const row = await lockPolicy(transaction);
  if (version > row.version) await writeRow(transaction, { ...row, version });
}

export async function reportGate(
  transaction: Transaction,
  request: { readonly worker: WorkerId; readonly pause: number; readonly generating: number },
): Promise<void> {
  const { worker, pause, generating } = request;
  await transaction.run('UPDATE workers SET pause_seen = ?, generating = ? WHERE id = ? AND ended_at IS NULL', pause, generating, worker);
  // Only a look, without a lock: every worker reports every second, and one that lets a pause settle has seen that pause.
  if ((await readRow(transaction)).state === 'pausing') await settlePause(transaction);
}

/** Call this whenever a worker may have stopped delaying the pause. */
export async function settlePause(transaction: Transaction): Promise<void> {
  const row = await lockPolicy(transaction);
  if (row.state !== 'pausing') return;
  const sql = 'SELECT 1 FROM workers WHERE ended_at IS NULL AND (pause_seen < ? OR generating > 0) LIMIT 1';
  if (await transaction.one(sql, row.pause)) return;
  await writeRow(transaction, { ...row, state: 'paused', since: transaction.nowMs });
  await transaction.appendEvent({ kind: 'policy-pause', data: { state: 'paused', mode: row.mode } });
}

/** For a change: no other call can change the policy until the transaction ends. */
export function lockPolicy(transaction: Transaction): Promise<PolicyRow> {
  return readRow(transaction, 'FOR UPDATE');
}

async function readRow(transaction: Transaction, lock = ''): Promise<PolicyRow> {
  const sql = `SELECT state, mode, pause, flushes, version, since, adapter, cache_salt, owner, owned_pause FROM policy ${lock}`;
  const row = await transaction.one<PolicyRow>(sql);
  if (!row) throw new RolloutError('internal', 'the store has no policy');
  return row;
}

async function writeRow(transaction: Transaction, row: PolicyRow): Promise<void> {
  const { state, mode, pause, flushes, version, since, adapter, cache_salt, owner, owned_pause } = row;
  const sql =
    'UPDATE policy SET state = ?, mode = ?, pause = ?, flushes = ?, version = ?, since = ?, adapter = ?, cache_salt = ?, owner = ?, owned_pause = ?';
  await transaction.run(sql, state, mode, pause, flushes, version, since, adapter, cache_salt, owner, owned_pause);
}
