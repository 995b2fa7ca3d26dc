// What the store keeps, as the wire shows it.

import type { BackendView } from '@millrace/protocol';
import { logprobsOf } from '../inference/logprobs.ts';
import type { Store, WorkerRecord } from '../store/store.ts';

export { toRolloutView, toTime } from '../sampling/group-view.ts';

export type BackendRecord = Parameters<Store['joinBackend']>[0];

/** The key stays inside. `workers` are the live ones. */
export function toBackendView(backend: BackendRecord, workers: readonly WorkerRecord[]): BackendView {
  const { id, url, dialect, model, policyVersion, state } = backend;
  const inFlight = workers.reduce((total, { report }) => total + (report?.backends[id] ?? 0), 0);
  const logprobs_mode = logprobsOf(backend);
  return { id, url, dialect, model: model ?? null, policy_version: policyVersion, logprobs_mode, state, in_flight: inFlight };
}
