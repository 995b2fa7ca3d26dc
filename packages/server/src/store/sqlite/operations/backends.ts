// The backends that joined. Their keys are stored, and never told in an event.

import type { BackendId, BackendState, Dialect, LogprobsMode } from '@millrace/protocol';
import type { BackendRecord, NewBackend } from '../../../inference/backends/backend.ts';
import type { Session } from '../engine/session.ts';
import { appendEvent } from './events.ts';
import { policy, raisePolicyVersion } from './policy.ts';

export function joinBackend(session: Session, backend: NewBackend): void {
  const { id, url, dialect, model, apiKey, logprobsMode, state } = backend;
  const policyVersion = backend.policyVersion ?? policy(session).policyVersion;
  const sql = `INSERT INTO backends (id, url, dialect, model, api_key, policy_version, logprobs_mode, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET url = excluded.url, dialect = excluded.dialect, model = excluded.model,
    api_key = excluded.api_key, policy_version = excluded.policy_version, logprobs_mode = excluded.logprobs_mode,
    state = excluded.state, broken_at = NULL, probes = 0, error = NULL, error_at = NULL`;
  session.run(sql, id, url, dialect, model ?? null, apiKey ?? null, policyVersion, logprobsMode ?? null, state);
  raisePolicyVersion(session, policyVersion);
  const data = { url, dialect, model: model ?? null, policy_version: policyVersion, state };
  appendEvent(session, { kind: 'backend-join', backendId: id, data });
}

export function drainBackend(session: Session, id: BackendId): boolean {
  const row = session.one<{ state: BackendState }>('SELECT state FROM backends WHERE id = ?', id);
  if (row && row.state !== 'draining') {
    session.run("UPDATE backends SET state = 'draining' WHERE id = ?", id);
    appendEvent(session, { kind: 'backend-drain', backendId: id, data: {} });
  }
  return row !== undefined;
}

export function leaveBackend(session: Session, id: BackendId): boolean {
  const known = session.run('DELETE FROM backends WHERE id = ?', id) > 0;
  if (known) appendEvent(session, { kind: 'backend-leave', backendId: id, data: {} });
  return known;
}

export function clearBackends(session: Session): number {
  return backends(session).filter(({ id }) => leaveBackend(session, id)).length;
}

interface BackendRow {
  readonly id: BackendId;
  readonly url: string;
  readonly dialect: Dialect;
  readonly model: string | null;
  readonly api_key: string | null;
  readonly policy_version: number;
  readonly logprobs_mode: LogprobsMode | null;
  readonly state: BackendState;
  readonly broken_at: number | null;
  readonly error: string | null;
  readonly error_at: number | null;
}

export function backends(session: Session): BackendRecord[] {
  return session.all<BackendRow>('SELECT * FROM backends ORDER BY id').map((row) => ({
    id: row.id,
    url: row.url,
    dialect: row.dialect,
    ...(row.model === null ? {} : { model: row.model }),
    ...(row.api_key === null ? {} : { apiKey: row.api_key }),
    policyVersion: row.policy_version,
    ...(row.logprobs_mode === null ? {} : { logprobsMode: row.logprobs_mode }),
    state: row.state,
    ...healthOf(row),
  }));
}

function healthOf({ error, error_at, broken_at }: BackendRow): Pick<BackendRecord, 'health'> {
  if (error === null || error_at === null) return {};
  return { health: { error, errorAtMs: error_at, ...(broken_at === null ? {} : { brokenAtMs: broken_at }) } };
}
