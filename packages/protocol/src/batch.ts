// Batches on the wire: a stream of tasks, each sampled by a group of siblings, until enough groups are informative for one
// training step. The service keeps the stages full, delivers each group once it is complete, and stops the surplus.

import { z } from 'zod';
import { batchId, groupId, seriesId } from './ids.ts';
import { limits, policySpan, rolloutView, sampling } from './rollout.ts';
import { trajectoryView } from './trajectory.ts';

const task = z.record(z.string(), z.unknown());
const mostTasks = 10_000;

/**
 * - rewards-differ: two rewards of the group differ by more than `tolerance`
 * - mean-within: the mean reward lies strictly between `above` and `below`
 * - any: every group with enough rewards
 */
export const informativeRule = z.discriminatedUnion('rule', [
  z.strictObject({ rule: z.literal('rewards-differ'), tolerance: z.number().min(0).default(1e-6) }),
  z.strictObject({ rule: z.literal('mean-within'), above: z.number(), below: z.number() }),
  z.strictObject({ rule: z.literal('any') }),
]);
export type InformativeRule = z.infer<typeof informativeRule>;

/** A registered file of tasks, one JSON object in each line. Its cursor is kept in the store and moves with each group begun. */
export const taskSource = z.strictObject({
  file: z.string().min(1).max(128).describe('A name from `sampling.taskFiles` of the configuration.'),
  cursor: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe("Batches with the same cursor go on where the one before stopped; absent: the series' name, else the file's."),
  shuffle_seed: z.int().min(0).optional().describe('Another order in each round through the file; absent: as it is written.'),
  rounds: z.int().min(1).optional().describe('So often at most through the file; absent: without end.'),
});
export type TaskSource = z.infer<typeof taskSource>;

export const webhook = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  secret: z.string().min(1).optional().describe('Signs each body: X-Millrace-Signature is sha256=HMAC. Never shown again.'),
});

export const batchRequest = z.strictObject({
  id: batchId.optional().describe("The caller's id makes it idempotent; one is made where it is absent."),
  series: seriesId.optional().describe('Batches of one training run: what is surplus in one is kept for the next.'),
  scenario: z.string().min(1).max(128),
  group_size: z.int().min(1).max(1024).describe('Siblings of each task.'),
  target: z.int().min(1).max(100_000).describe('Informative groups that are delivered, exactly.'),
  tasks: z.array(task).max(mostTasks).default([]),
  source: taskSource.optional(),
  closed: z.boolean().optional().describe('No tasks will be appended. Absent: true where tasks were given or there is a source.'),
  sampling: sampling.prefault({}),
  limits: limits.prefault({}),
  informative: informativeRule.prefault({ rule: 'rewards-differ' }),
  min_samples: z
    .int()
    .min(1)
    .max(1024)
    .optional()
    .describe('A group with so many rewards that is informative is delivered, and its stragglers are stopped; absent: group_size.'),
  give_up_after: z.int().min(1).max(1024).optional().describe('A group whose first so many rewards are uninformative is stopped.'),
  failures: z
    .enum(['replace', 'exclude'])
    .default('replace')
    .describe('A sibling that failed without a reward is sampled again, up to `max_replacements` in a group, or left out.'),
  max_replacements: z.int().min(0).max(10_000).default(4),
  max_groups: z.int().min(1).optional().describe('Groups begun at most; the batch ends short of its target then.'),
  max_open_groups: z.int().min(1).max(100_000).optional().describe('Groups sampled at the same time; absent: as the stages have room.'),
  for_version: z
    .int()
    .min(0)
    .optional()
    .describe('The policy version that this batch trains. No group begins while the present version is more than max_staleness behind it.'),
  max_staleness: z
    .int()
    .min(0)
    .default(1)
    .describe(
      'Policy versions between the first that sampled a group and the present one at its delivery; what is older is sampled again.',
    ),
  surplus: z
    .enum(['stop', 'keep'])
    .default('stop')
    .describe('Unfinished siblings when the target is met: stopped within a second, or run on for the next batch of the series.'),
  webhook: webhook.optional(),
  metadata: z.record(z.string(), z.unknown()).optional().describe('Handed back as it came.'),
});
export type BatchRequest = z.infer<typeof batchRequest>;
/** A batch as a caller writes it: what has a default may be left out. */
export type BatchInput = z.input<typeof batchRequest>;

/** `met`: the target was delivered. `short`: the tasks or `max_groups` ran out before. */
export const batchStates = ['open', 'met', 'short', 'cancelled'] as const;
export type BatchState = (typeof batchStates)[number];

/**
 * - open: its siblings are sampled
 * - delivered: informative, with a place in the stream
 * - uniform: complete, and not informative
 * - failed: too few of its siblings could get a reward
 * - surplus: stopped, or not needed, when the target was met; a later batch of the series may take it over
 * - stale: its weights were too old at its delivery
 */
export const groupStates = ['open', 'delivered', 'uniform', 'failed', 'surplus', 'stale'] as const;
export type GroupState = (typeof groupStates)[number];

/** What was sampled and will not be delivered. */
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
  carried: z.int().describe('Groups taken over from an earlier batch of the series.'),
  tasks: z.object({ given: z.int(), begun: z.int(), closed: z.boolean() }),
  informative_share: z.number().nullable().describe('Of the groups judged so far.'),
  mean_reward: z.number().nullable().describe('Over the rewards of its judged groups, delivered or uniform.'),
  wasted: z.object({ uniform: waste, failed: waste, surplus: waste, stale: waste }),
  created_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
  metadata: z.record(z.string(), z.unknown()).nullable(),
});
export type BatchView = z.infer<typeof batchView>;

export const batchList = z.object({ batches: z.array(batchView), next: z.string().nullable() });

export const appendTasksRequest = z.strictObject({
  key: z.string().min(1).max(128).optional().describe('A request that comes again with its key changes nothing.'),
  tasks: z.array(task).max(mostTasks).default([]),
  closed: z.boolean().default(false).describe('These were the last.'),
});

/** A delivered group: exactly the siblings that count, each with its reward. */
export const groupView = z.object({
  seq: z.int().min(1).describe('Its place in the stream of its batch, without gaps.'),
  id: groupId,
  batch: batchId,
  task_index: z.int().describe('Which task of the stream.'),
  task,
  rewards: z.array(z.number()).describe('In the order of `rollouts`.'),
  rollouts: z.array(rolloutView),
  trajectories: z.array(trajectoryView).optional().describe('In the same order, where they were asked for.'),
  policy_versions: policySpan.nullable(),
  carried: z.boolean(),
  delivered_at: z.iso.datetime(),
});
export type GroupView = z.infer<typeof groupView>;

export const groupPage = z.object({
  groups: z.array(groupView),
  next: z.int().describe('The `after` of the following page.'),
  state: z.enum(batchStates).describe('Once it is not open and `groups` is empty, nothing more comes.'),
});
export type GroupPage = z.infer<typeof groupPage>;

export const ackRequest = z.strictObject({
  consumer: z.string().min(1).max(128),
  through: z.int().min(0).describe('The last `seq` that is safely with this consumer.'),
});
export const ackReply = z.object({ consumer: z.string(), through: z.int() });
