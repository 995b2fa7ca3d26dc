// Converts batches and delivered groups to their wire views.

import { type BatchView, definedOf, type GroupView, policySpan } from '@millrace/protocol';
import { type BatchRecord, type GroupRecord, toRolloutView, toTime } from '@millrace/store';

export function toBatchView(record: BatchRecord): BatchView {
  const { plan, groups } = record;
  const judged = groups.delivered + groups.uniform;
  return {
    id: record.id,
    series: plan.series ?? null,
    state: record.state,
    scenario: plan.scenario,
    group_size: plan.group_size,
    target: plan.target,
    groups: { ...groups },
    carried: record.carried,
    tasks: { ...record.tasks },
    informative_share: judged === 0 ? null : groups.delivered / judged,
    mean_reward: record.meanReward ?? null,
    wasted: { ...record.wasted },
    created_at: toTime(record.createdAtMs),
    ended_at: record.endedAtMs === undefined ? null : toTime(record.endedAtMs),
    metadata: plan.metadata ?? null,
    ...definedOf({ paused: record.paused && { reason: record.paused.reason, failed_at: toTime(record.paused.failedAtMs) } }),
  };
}

export function toGroupView(group: GroupRecord): GroupView {
  const spans = group.rollouts.flatMap(({ result }) => result?.policy_versions ?? []);
  const first = Math.min(...spans.map((span) => span.first));
  const last = Math.max(...spans.map((span) => span.last));
  return {
    seq: group.seq,
    id: group.id,
    batch: group.batch,
    task_index: group.taskIndex,
    task: { ...group.task },
    rewards: group.rollouts.flatMap(({ result }) => result?.reward ?? group.penalty ?? []),
    rollouts: group.rollouts.map(toRolloutView),
    policy_versions: spans.length === 0 ? null : policySpan.parse({ first, last }),
    carried: group.carried,
    delivered_at: toTime(group.deliveredAtMs),
  };
}
