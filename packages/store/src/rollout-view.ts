// Converts a rollout's record to its wire view.

import { definedOf, type RolloutView } from '@millrace/protocol';
import type { RolloutRecord } from './rollout-record.ts';

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
    ...definedOf({ fork: submission.fork }),
  };
}

export function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
