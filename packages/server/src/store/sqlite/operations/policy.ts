// The policy: one row that says whether turns are sampled and under which weights, and what each worker's gate last said of
// itself. `paused` is written only when every worker that is not ended has heard of this very pause and has no call under way.

import { type PauseMode, type PolicyState, RolloutError, type WorkerId } from '@millrace/protocol';
import type { PolicyRecord } from '../../../inference/policy-gate.ts';
import type { Session } from '../engine/session.ts';
import { appendEvent } from './events.ts';

interface PolicyRow {
  readonly state: PolicyState;
  readonly mode: PauseMode | null;
  readonly pause: number;
  readonly flushes: number;
  readonly version: number;
  readonly since: number;
}

export function policy(session: Session): PolicyRecord {
  const { state, mode, pause, flushes, version, since } = readRow(session);
  const sql = 'SELECT coalesce(sum(generating), 0) AS n FROM workers WHERE ended_at IS NULL';
  const generating = state === 'paused' ? 0 : (session.one<{ n: number }>(sql)?.n ?? 0);
  return { state, ...(mode ? { mode } : {}), pause, flushes, policyVersion: version, generating, sinceMs: since };
}

/** While there is a pause it is kept, or made stricter. */
export function pausePolicy(session: Session, { mode }: { readonly mode: PauseMode }): PolicyRecord {
  const row = readRow(session);
  const isNew = row.state === 'running';
  if (isNew || (mode === 'abort' && row.mode === 'wait')) {
    const state = isNew ? 'pausing' : row.state;
    writeRow(session, { ...row, state, mode, pause: row.pause + Number(isNew), since: isNew ? session.nowMs : row.since });
    appendEvent(session, { kind: 'policy-pause', data: { state, mode } });
    settlePause(session);
  }
  return policy(session);
}

/** Repeating it changes nothing. The backends' versions change with the policy's. */
export function resumePolicy(
  session: Session,
  request: { readonly policyVersion?: number; readonly cachesFlushed: boolean },
): PolicyRecord {
  const row = readRow(session);
  const { policyVersion: version = row.version, cachesFlushed } = request;
  if (version < row.version)
    throw new RolloutError('conflict', `the policy is at version ${row.version}: it cannot be resumed at the older version ${version}`);
  if (row.state === 'running' && version === row.version) return policy(session);
  if (request.policyVersion !== undefined) session.run('UPDATE backends SET policy_version = ?', version);
  const since = row.state === 'running' ? row.since : session.nowMs;
  writeRow(session, { ...row, state: 'running', mode: null, flushes: row.flushes + Number(cachesFlushed), version, since });
  appendEvent(session, { kind: 'policy-resume', data: { policy_version: version, caches_flushed: cachesFlushed } });
  return policy(session);
}

/** A backend that joins with newer weights makes them the present ones. */
export function raisePolicyVersion(session: Session, version: number): void {
  const row = readRow(session);
  if (version > row.version) writeRow(session, { ...row, version });
}

export function reportGate(
  session: Session,
  request: { readonly worker: WorkerId; readonly pause: number; readonly generating: number },
): void {
  const { worker, pause, generating } = request;
  session.run('UPDATE workers SET pause_heard = ?, generating = ? WHERE id = ? AND ended_at IS NULL', pause, generating, worker);
  settlePause(session);
}

/** To be called whenever one worker less may be holding the pause up. */
export function settlePause(session: Session): void {
  const row = readRow(session);
  if (row.state !== 'pausing') return;
  const sql = 'SELECT 1 FROM workers WHERE ended_at IS NULL AND (pause_heard < ? OR generating > 0) LIMIT 1';
  if (session.one(sql, row.pause)) return;
  writeRow(session, { ...row, state: 'paused', since: session.nowMs });
  appendEvent(session, { kind: 'policy-pause', data: { state: 'paused', mode: row.mode } });
}

function readRow(session: Session): PolicyRow {
  const row = session.one<PolicyRow>('SELECT state, mode, pause, flushes, version, since FROM policy');
  if (!row) throw new RolloutError('internal', 'the store has no policy');
  return row;
}

function writeRow(session: Session, { state, mode, pause, flushes, version, since }: PolicyRow): void {
  const sql = 'UPDATE policy SET state = ?, mode = ?, pause = ?, flushes = ?, version = ?, since = ?';
  session.run(sql, state, mode, pause, flushes, version, since);
}
