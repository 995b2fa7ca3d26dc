// What the store keeps, as the wire shows it.

import type { BackendView, RolloutView } from '@millrace/protocol';
import { logprobsOf } from '../inference/logprobs.ts';
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
export function toBackendView(backend: BackendRecord, workers: readonly WorkerRecord[]): BackendView {
  const { id, url, dialect, model, policyVersion, state } = backend;
  const inFlight = workers.reduce((total, { report }) => total + (report?.backends[id] ?? 0), 0);
  const logprobs_mode = logprobsOf(backend);
  return { id, url, dialect, model: model ?? null, policy_version: policyVersion, logprobs_mode, state, in_flight: inFlight };
}

export function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
