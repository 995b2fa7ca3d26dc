// The rollouts of a group. Their ids derive from the group's id, so creating them twice gives the same rollouts. Each sibling gets
// a different seed, because equal seeds would sample equal tokens.

import { type BatchId, definedOf, type GroupId, groupId, rolloutId } from '@millrace/protocol';
import type { BatchPlan, NewRollout, Task } from '@millrace/store';

export function toGroupId(batch: BatchId, begun: number): GroupId {
  return groupId.parse(`${batch}:${begun}`);
}

interface Siblings {
  readonly batch: BatchId;
  readonly group: GroupId;
  readonly task: Task;
  readonly plan: BatchPlan;
  /** How many siblings the group already has. */
  readonly from: number;
  readonly count: number;
}

export function makeSiblings({ batch, group, task, plan, from, count }: Siblings): NewRollout[] {
  return Array.from({ length: count }, (_, index) => {
    const number = from + index;
    const id = rolloutId.parse(`${group}:${number}`);
    const { seed } = plan.sampling;
    const sampling = { ...plan.sampling, ...definedOf({ seed: seed === undefined ? undefined : seed + number }) };
    const { scenario, limits, requires, date, agent } = plan;
    const submission = {
      id,
      scenario,
      task: { ...task },
      group,
      sampling,
      limits,
      metadata: { batch },
      ...definedOf({ requires, date, agent }),
    };
    return { id, submission, digest: `sibling of ${group}` };
  });
}

/** What must be equal for a group to be carried over from one batch to another. */
export function toRecipe({
  scenario,
  sampling,
  limits,
  date,
  agent,
}: Pick<BatchPlan, 'scenario' | 'sampling' | 'limits' | 'date' | 'agent'>): string {
  return JSON.stringify({ scenario, sampling, limits, date, agent });
}
