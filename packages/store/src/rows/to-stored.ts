// Submissions as they are stored: the task apart, because siblings of a group share it.

import { scheduler } from 'node:timers/promises';
import { definedOf } from '@millrace/protocol';
import type { NewRollout } from '../rollout-record.ts';
import type { StoredSubmission } from './operations/submit.ts';

/** Yields to the event loop between slices: serializing ten thousand tasks takes many milliseconds. */
export async function toStored(rollouts: readonly NewRollout[]): Promise<StoredSubmission[]> {
  const stored: StoredSubmission[] = [];
  for (const { id, digest, submission } of rollouts) {
    const { task, ...rest } = submission;
    const { scenario, group, priority, requires, date, fork } = rest;
    stored.push(
      definedOf({ id, digest, scenario, group, priority, requires, date, fork, body: JSON.stringify(rest), task: JSON.stringify(task) }),
    );
    if (stored.length % 500 === 0) await scheduler.yield();
  }
  return stored;
}
