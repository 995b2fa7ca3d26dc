// The registered backends. Their keys are stored, and never appear in an event.

import type { BackendProbe, BackendRecord, NewBackend } from '@millrace/engines';
import type { BackendId, BackendState, Dialect, LogprobsMode } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import type { Transaction } from '../../transaction.ts';
import { breakBackend } from './health/backend-health.ts';
import { toJoinedProbe } from './health/backend-identity.ts';
import { lockPolicy, raisePolicyVersion } from './policy.ts';

export async function joinBackend(transaction: Transaction, backend: NewBackend): Promise<void> {
  const { id, url, dialect, model, apiKey, logprobsMode, state } = backend;
  // Locked before the backend, as in `resumePolicy`.
  const { version } = await lockPolicy(transaction);
  const { policyVersion = version } = backend;
  const sql = `INSERT INTO backends (id, url, dialect, model, api_key, policy_version, logprobs_mode, probe, state)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET url = excluded.url, dialect = excluded.dialect, model = excluded.model,
    api_key = excluded.api_key, policy_version = excluded.policy_version, logprobs_mode = excluded.logprobs_mode,
    probe = excluded.probe, state = excluded.state, broken_at = NULL, probes = 0, error = NULL, error_at = NULL`;
  const probe = await toJoinedProbe(transaction, { id, probe: backend.probe }, policyVersion);
  const found = probe === undefined ? null : JSON.stringify(probe);
  await transaction.run(sql, id, url, dialect, model ?? null, apiKey ?? null, policyVersion, logprobsMode ?? null, found, state);
  await transaction.run('DELETE FROM backend_faults WHERE backend = ?', id);
  await raisePolicyVersion(transaction, policyVersion);
  const data = { url, dialect, model: model ?? null, policy_version: policyVersion, state };
  await transaction.appendEvent({ kind: 'backend-join', backendId: id, data });
  if (backend.error !== undefined) await breakBackend(transaction, { id, error: backend.error });
}

export async function drainBackend(transaction: Transaction, id: BackendId): Promise<boolean> {
  await transaction.lock('place'); // a placement under way has not seen it, and would come after
  const row = await transaction.one<{ state: BackendState }>('SELECT state FROM backends WHERE id = ? FOR UPDATE', id);
  if (row && row.state !== 'draining') {
    await transaction.run("UPDATE backends SET state = 'draining' WHERE id = ?", id);
    await transaction.appendEvent({ kind: 'backend-drain', backendId: id, data: {} });
  }
  return row !== undefined;
}

export async function leaveBackend(transaction: Transaction, id: BackendId): Promise<boolean> {
  await transaction.lock('place');
  const known = (await transaction.run('DELETE FROM backends WHERE id = ?', id)) > 0;
  await transaction.run('DELETE FROM backend_faults WHERE backend = ?', id);
  if (known) await transaction.appendEvent({ kind: 'backend-leave', backendId: id, data: {} });
  return known;
}

export async function clearBackends(transaction: Transaction): Promise<number> {
  const left = await Array.fromAsync(await backends(transaction), ({ id }) => leaveBackend(transaction, id));
  return left.filter(Boolean).length;
}

interface BackendRow {
  readonly id: BackendId;
  readonly url: string;
  readonly dialect: Dialect;
  readonly model: string | null;
  readonly api_key: string | null;
  readonly policy_version: number;
  readonly logprobs_mode: LogprobsMode | null;
  readonly probe: string | null;
  readonly state: BackendState;
  readonly broken_at: number | null;
  readonly error: string | null;
  readonly error_at: number | null;
}

interface FaultRow {
  readonly backend: BackendId;
  readonly machine: string;
  readonly since: number;
}

export async function backends(transaction: Transaction): Promise<BackendRecord[]> {
  const faults = await transaction.all<FaultRow>('SELECT backend, machine, since FROM backend_faults ORDER BY machine');
  return (await transaction.all<BackendRow>('SELECT * FROM backends ORDER BY id')).map((row) => ({
    id: row.id,
    url: row.url,
    dialect: row.dialect,
    policyVersion: row.policy_version,
    state: row.state,
    ...definedOf({
      model: row.model ?? undefined,
      apiKey: row.api_key ?? undefined,
      logprobsMode: row.logprobs_mode ?? undefined,
      probe: row.probe === null ? undefined : (JSON.parse(row.probe) as BackendProbe),
      health: healthOf(row, faults),
    }),
  }));
}

function healthOf({ id, error, error_at, broken_at }: BackendRow, faults: readonly FaultRow[]): BackendRecord['health'] {
  if (error === null || error_at === null) return undefined;
  const brokenFor = faults.filter(({ backend }) => backend === id).map(({ machine, since }) => ({ machine, sinceMs: since }));
  return definedOf({
    error,
    errorAtMs: error_at,
    brokenAtMs: broken_at ?? undefined,
    brokenFor: brokenFor.length > 0 ? brokenFor : undefined,
  });
}
