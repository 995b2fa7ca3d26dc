// What the store keeps, as the wire shows it.

import type { BackendView, RolloutView } from '@millrace/protocol';
import { logprobsOf } from '../inference/logprobs.ts';
import type { BackendLoad } from '../inference/placements.ts';
import type { RolloutRecord, Store, WorkerRecord } from '../store/store.ts';

export type BackendRecord = Parameters<Store['joinBackend']>[0];

export function toRolloutView(record: RolloutRecord): RolloutView {
  const { id, submission, state, attempt, retries, losses, failures } = record;
  return {
    id,
    scenario: submission.scenario,
    group: record.group ?? null,
    state,
    attempt,
    retries,
    losses,
    worker: record.worker ?? null,
    reward: record.result?.reward ?? null,
    result: record.result ?? null,
    failure: record.failure ?? null,
    failures: [...failures],
    created_at: toTime(record.createdAtMs),
    ended_at: record.endedAtMs === undefined ? null : toTime(record.endedAtMs),
    metadata: submission.metadata ?? null,
  };
}

/** The key stays inside. `workers` are the live ones. */
export function toBackendView(backend: BackendRecord, now: BackendsNow): BackendView {
  const { id, url, dialect, model, policyVersion, state, health } = backend;
  const load = now.loads.find((one) => one.id === id);
  return {
    id,
    url,
    dialect,
    model: model ?? null,
    policy_version: policyVersion,
    logprobs_mode: logprobsOf(backend),
    state,
    health: health?.brokenAtMs === undefined ? 'ok' : 'broken',
    last_error: health ? { message: health.error, at: toTime(health.errorAtMs) } : null,
    in_flight: load?.inFlight ?? 0,
    calls: now.workers.reduce((total, { report }) => total + (report?.calls?.[id] ?? 0), 0),
    tokens: load?.tokens ?? 0,
  };
}

export interface BackendsNow {
  readonly loads: readonly BackendLoad[];
  readonly workers: readonly WorkerRecord[];
}

export function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
