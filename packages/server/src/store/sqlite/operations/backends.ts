// The registered backends. Their keys are stored, and never appear in an event.

import { type BackendId, type BackendState, type Dialect, definedOf, type LogprobsMode } from '@millrace/protocol';
import type { BackendProbe, BackendRecord, NewBackend } from '../../../inference/backends/backend.ts';
import type { Transaction } from '../engine/connection.ts';
import { appendEvent } from './events.ts';
import { breakBackend } from './placements.ts';
import { policy, raisePolicyVersion } from './policy.ts';

export function joinBackend(transaction: Transaction, backend: NewBackend): void {
  const { id, url, dialect, model, apiKey, logprobsMode, probe, state } = backend;
  const policyVersion = backend.policyVersion ?? policy(transaction).policyVersion;
  const sql = `INSERT INTO backends (id, url, dialect, model, api_key, policy_version, logprobs_mode, probe, state)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET url = excluded.url, dialect = excluded.dialect, model = excluded.model,
    api_key = excluded.api_key, policy_version = excluded.policy_version, logprobs_mode = excluded.logprobs_mode,
    probe = excluded.probe, state = excluded.state, broken_at = NULL, probes = 0, error = NULL, error_at = NULL`;
  const found = probe === undefined ? null : JSON.stringify(probe);
  transaction.run(sql, id, url, dialect, model ?? null, apiKey ?? null, policyVersion, logprobsMode ?? null, found, state);
  raisePolicyVersion(transaction, policyVersion);
  const data = { url, dialect, model: model ?? null, policy_version: policyVersion, state };
  appendEvent(transaction, { kind: 'backend-join', backendId: id, data });
  if (backend.error !== undefined) breakBackend(transaction, { id, error: backend.error });
}

export function drainBackend(transaction: Transaction, id: BackendId): boolean {
  const row = transaction.one<{ state: BackendState }>('SELECT state FROM backends WHERE id = ?', id);
  if (row && row.state !== 'draining') {
    transaction.run("UPDATE backends SET state = 'draining' WHERE id = ?", id);
    appendEvent(transaction, { kind: 'backend-drain', backendId: id, data: {} });
  }
  return row !== undefined;
}

export function leaveBackend(transaction: Transaction, id: BackendId): boolean {
  const known = transaction.run('DELETE FROM backends WHERE id = ?', id) > 0;
  if (known) appendEvent(transaction, { kind: 'backend-leave', backendId: id, data: {} });
  return known;
}

export function clearBackends(transaction: Transaction): number {
  return backends(transaction).filter(({ id }) => leaveBackend(transaction, id)).length;
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

export function backends(transaction: Transaction): BackendRecord[] {
  return transaction.all<BackendRow>('SELECT * FROM backends ORDER BY id').map((row) => ({
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
      health: healthOf(row),
    }),
  }));
}

function healthOf({ error, error_at, broken_at }: BackendRow): BackendRecord['health'] {
  if (error === null || error_at === null) return undefined;
  return definedOf({ error, errorAtMs: error_at, brokenAtMs: broken_at ?? undefined });
}
