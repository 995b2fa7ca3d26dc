// Batches on the wire: a stream of tasks, each sampled by a group of siblings, until enough groups are informative for one training
// step. The service keeps the stages full, delivers each group when it is complete, and stops the surplus.

import { z } from 'zod';
import { errorBody } from './error-body.ts';
import { batchId, groupId, rolloutId, seriesId } from './ids.ts';
import { agent, limits, policySpan, priority, requires, rolloutView, templateDate } from './rollout.ts';
import { sampling } from './sampling.ts';
import { trajectoryView } from './trajectory.ts';

const task = z.record(z.string(), z.unknown());
const maxTasks = 10_000;

/**
 * - rewards-differ: two rewards of the group differ by more than `tolerance`
 * - mean-within: the mean reward is strictly between `above` and `below`
 * - any: every group with enough rewards is informative
 */
export const informativeRule = z.discriminatedUnion('rule', [
  z.strictObject({ rule: z.literal('rewards-differ'), tolerance: z.number().min(0).default(1e-6) }),
  z.strictObject({ rule: z.literal('mean-within'), above: z.number(), below: z.number() }),
  z.strictObject({ rule: z.literal('any') }),
]);
export type InformativeRule = z.infer<typeof informativeRule>;

/** A registered file of tasks, one JSON object per line. Its cursor is in the store and advances with each group that starts. */
export const taskSource = z.strictObject({
  file: z.string().min(1).max(128).describe('A name from `sampling.taskFiles` of the configuration.'),
  cursor: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe(
      'Batches with the same cursor continue where the previous one stopped. Default: the name of the series, otherwise of the file.',
    ),
  shuffle_seed: z.int().min(0).optional().describe('Shuffles each round through the file differently. Default: the order of the file.'),
  rounds: z.int().min(1).optional().describe('The maximum number of rounds through the file. Default: unlimited.'),
});
export type TaskSource = z.infer<typeof taskSource>;

export const webhook = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  secret: z.string().min(1).optional().describe('Signs each delivery by the Standard Webhooks specification. Never returned.'),
});

export const batchRequest = z.strictObject({
  id: batchId.optional().describe("The caller's id makes the request idempotent. Default: a new id."),
  series: seriesId.optional().describe('The batches of one training run. Surplus groups of one batch are kept for the next.'),
  scenario: z.string().min(1).max(128),
  group_size: z.int().min(1).max(1024).describe('How many siblings each task gets.'),
  target: z.int().min(1).max(100_000).describe('The exact number of informative groups to deliver.'),
  tasks: z.array(task).max(maxTasks).default([]),
  source: taskSource.optional(),
  closed: z.boolean().optional().describe('No tasks will be appended. Default: true if there are tasks or a source.'),
  agent: agent.optional(),
  date: templateDate.optional(),
  sampling: sampling.prefault({}),
  limits: limits.prefault({}),
  informative: informativeRule.prefault({ rule: 'rewards-differ' }),
  min_samples: z
    .int()
    .min(1)
    .max(1024)
    .optional()
    .describe('An informative group with this many rewards is delivered, and its remaining siblings are stopped. Default: group_size.'),
  min_rewards: z
    .int()
    .min(1)
    .max(1024)
    .optional()
    .describe('A group that gets fewer rewards, because siblings failed, is not delivered. Default: min_samples, or half of group_size.'),
  give_up_after: z.int().min(1).max(1024).optional().describe('A group is stopped if its first rewards, this many, are not informative.'),
  failures: z
    .enum(['replace', 'exclude'])
    .default('replace')
    .describe('A sibling that failed without a reward is sampled again, up to `max_replacements` times per group, or left out.'),
  policy_failures: z
    .enum(['resample', 'penalise'])
    .default('resample')
    .describe(
      'What a failed rollout counts as if the policy is to blame: as any other failure, or as a sample with the reward `penalty`, if it has a trajectory. A failure after the agent has acted does not count here: such a rollout is done, with the lowest reward of its task.',
    ),
  penalty: z.number().default(0).describe('The reward of a penalised sample.'),
  max_replacements: z.int().min(0).max(10_000).default(4),
  max_groups: z.int().min(1).optional().describe('The maximum number of groups to start. The batch then ends short of its target.'),
  max_open_groups: z
    .int()
    .min(1)
    .max(100_000)
    .optional()
    .describe('The maximum number of groups sampled at the same time. Default: as many as the stages have room for.'),
  for_version: z
    .int()
    .min(0)
    .optional()
    .describe(
      'The policy version that this batch trains. No group starts while the current version is more than `max_staleness` behind it.',
    ),
  max_staleness: z
    .int()
    .min(0)
    .default(1)
    .describe('The maximum age of a group at delivery, in policy versions since its first token. An older group is sampled again.'),
  surplus: z
    .enum(['stop', 'keep'])
    .default('stop')
    .describe(
      'What happens to unfinished siblings when the target is met: they are stopped within a second, or continue for the next batch of the series.',
    ),
  priority: priority.optional(),
  weight: z
    .number()
    .min(0.01)
    .max(100)
    .optional()
    .describe('Its share of the workers, relative to other batches and to plain submissions, which have 1. Default: 1.'),
  requires: requires.optional(),
  webhook: webhook.optional(),
  metadata: z.record(z.string(), z.unknown()).optional().describe('Returned unchanged.'),
});
export type BatchRequest = z.infer<typeof batchRequest>;
/** A batch as a caller writes it: fields with a default are optional. */
export type BatchInput = z.input<typeof batchRequest>;

/** `met`: the target was delivered. `short`: the tasks or `max_groups` ran out first. */
export const batchStates = ['open', 'met', 'short', 'cancelled'] as const;
export type BatchState = (typeof batchStates)[number];

/**
 * - open: its siblings are being sampled
 * - delivered: informative, with a `seq` in the stream
 * - uniform: complete, but not informative
 * - failed: too few siblings got a reward
 * - surplus: stopped or not needed when the target was met; a later batch of the series may use it
 * - stale: its weights were too old at delivery
 */
export const groupStates = ['open', 'delivered', 'uniform', 'failed', 'surplus', 'stale'] as const;
export type GroupState = (typeof groupStates)[number];

/** What was sampled but is not delivered. */
export const waste = z.object({ rollouts: z.int(), tokens: z.int(), seconds: z.number() });
export type Waste = z.infer<typeof waste>;

export const batchView = z.object({
  id: batchId,
  series: seriesId.nullable(),
  state: z.enum(batchStates),
  scenario: z.string(),
  group_size: z.int(),
  target: z.int(),
  groups: z.record(z.enum(groupStates), z.int()),
  carried: z.int().describe('Groups that started in an earlier batch of the series.'),
  tasks: z.object({ given: z.int(), begun: z.int(), closed: z.boolean() }),
  informative_share: z.number().nullable().describe('The share of informative groups among those judged so far.'),
  mean_reward: z.number().nullable().describe('Over the rewards of its judged groups, delivered or uniform.'),
  wasted: z.object({ uniform: waste, failed: waste, surplus: waste, stale: waste }),
  created_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
  metadata: z.record(z.string(), z.unknown()).nullable(),
  paused: z
    .object({ reason: z.string(), failed_at: z.iso.datetime() })
    .optional()
    .describe(
      'Several groups in a row failed without blame on their tasks. Their tasks are in line again, and one group at a time is tried until one succeeds.',
    ),
  waiting: z.string().optional().describe('Why the server that replies cannot start a group from the task file of the batch.'),
});
export type BatchView = z.infer<typeof batchView>;

export const batchList = z.object({ batches: z.array(batchView), next: z.string().nullable() });

export const appendTasksRequest = z.strictObject({
  key: z.string().min(1).max(128).optional().describe('Makes the request idempotent.'),
  tasks: z.array(task).max(maxTasks).default([]),
  closed: z.boolean().default(false).describe('These are the last tasks.'),
});

/** In place of a trajectory that the store has lost or that came back changed. */
export const lostTrajectory = errorBody.extend({ rollout_id: rolloutId });
export type LostTrajectory = z.infer<typeof lostTrajectory>;

/** A delivered group: the siblings that count, each with its reward. */
export const groupView = z.object({
  seq: z.int().min(1).describe('Its position in the stream of its batch, without gaps.'),
  id: groupId,
  batch: batchId,
  task_index: z.int().describe('The position of its task in the stream of tasks.'),
  task,
  rewards: z.array(z.number()).describe('In the order of `rollouts`.'),
  rollouts: z.array(rolloutView),
  trajectories: z
    .array(z.union([trajectoryView, lostTrajectory]))
    .optional()
    .describe('In the order of `rollouts`, if requested. One that cannot be read is an error with the id of its rollout.'),
  policy_versions: policySpan.nullable(),
  carried: z.boolean(),
  delivered_at: z.iso.datetime(),
});
export type GroupView = z.infer<typeof groupView>;

export const groupPage = z.object({
  groups: z.array(groupView),
  next: z.int().describe('The `after` of the next page.'),
  state: z.enum(batchStates).describe('If it is not `open` and `groups` is empty, there are no more groups.'),
});
export type GroupPage = z.infer<typeof groupPage>;

export const ackRequest = z.strictObject({
  consumer: z.string().min(1).max(128),
  through: z.int().min(0).describe('The last `seq` that this consumer has stored.'),
});
export const ackReply = z.object({ consumer: z.string(), through: z.int() });
