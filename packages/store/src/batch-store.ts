// The part of the store's contract for batches, their groups and their delivery. Every decision is one guarded transaction,
// so a decision that is repeated or too late changes nothing.

import type {
  BatchId,
  BatchRequest,
  BatchState,
  Failure,
  GroupId,
  GroupState,
  RolloutId,
  RolloutState,
  SeriesId,
  Waste,
} from '@millrace/protocol';
import type { NewRollout, RolloutRecord } from './rollout-record.ts';

export type Task = Readonly<Record<string, unknown>>;

/** A request without its tasks and its webhook. */
export type BatchPlan = Omit<BatchRequest, 'id' | 'tasks' | 'webhook' | 'closed'> & {
  /** Of the content of its task file when it was created. */
  readonly source_digest?: string;
};

export interface NewBatch {
  readonly id: BatchId;
  /** Distinguishes a repeated request from a different one with the same id. */
  readonly digest: string;
  readonly plan: BatchPlan;
  readonly tasks: readonly Task[];
  readonly closed: boolean;
  readonly webhook?: { readonly url: string; readonly secret?: string };
  /** Groups can only be carried over between batches with the same recipe. */
  readonly recipe: string;
}

/** A batch pauses after this many groups in a row that failed without blame on their tasks. */
export const stormGroups = 3;

/** Why a batch starts no groups but probes. */
export interface BatchPause {
  readonly reason: string;
  /** When its last group failed. */
  readonly failedAtMs: number;
}

export interface BatchRecord {
  readonly id: BatchId;
  readonly plan: BatchPlan;
  readonly state: BatchState;
  readonly groups: Readonly<Record<GroupState, number>>;
  readonly carried: number;
  readonly tasks: { readonly given: number; readonly begun: number; readonly closed: boolean };
  /** Over all rewards of its judged groups, delivered or uniform; absent before the first. */
  readonly meanReward?: number;
  readonly wasted: Readonly<Record<'uniform' | 'failed' | 'surplus' | 'stale', Waste>>;
  readonly createdAtMs: number;
  readonly endedAtMs?: number;
  readonly paused?: BatchPause;
}

/** An open batch as the batch keeper sees it. */
export interface OpenBatch {
  readonly id: BatchId;
  readonly plan: BatchPlan;
  readonly recipe: string;
  readonly closed: boolean;
  /** Groups by state. */
  readonly open: number;
  readonly delivered: number;
  readonly uniform: number;
  readonly failed: number;
  readonly begun: number;
  /** Tasks in its queue: submitted tasks that have not started, and tasks to sample again. */
  readonly waiting: number;
  readonly createdAtMs: number;
  readonly meanReward?: number;
  /** What the previous batch of the series showed: its informative groups, of all groups judged. */
  readonly before?: { readonly informative: number; readonly judged: number };
  readonly paused?: BatchPause;
}

export interface Sibling {
  readonly id: RolloutId;
  readonly state: RolloutState;
  /** It was asked to stop: no reward is expected from it. */
  readonly stopping: boolean;
  readonly reward?: number;
  readonly firstVersion?: number;
  readonly failure?: Pick<Failure, 'code' | 'blame' | 'message'>;
  readonly hasTrajectory: boolean;
}

export interface OpenGroup {
  readonly id: GroupId;
  readonly taskIndex: number;
  readonly replacements: number;
  readonly createdAtMs: number;
  /** In the order in which they ended; unfinished ones come last. */
  readonly siblings: readonly Sibling[];
}

export interface SurplusGroup extends OpenGroup {
  readonly task: Task;
}

export interface NewGroup {
  readonly id: GroupId;
  readonly batch: BatchId;
  /** How many groups of the batch were started before it. The group starts only if that is still true. */
  readonly begun: number;
  readonly task: Task;
  readonly rollouts: readonly NewRollout[];
  /** The task is the next in the batch's queue, or was drawn by a cursor, which moves in the same transaction. */
  readonly from: { readonly kind: 'queue' } | { readonly kind: 'cursor'; readonly name: string; readonly at: number; readonly to: number };
}

export interface Settlement {
  readonly group: GroupId;
  readonly batch: BatchId;
  readonly state: 'delivered' | 'uniform' | 'failed' | 'stale';
  /** The siblings that count, in order; empty unless the group is delivered. */
  readonly members: readonly RolloutId[];
  /** For a failed group whose task is not to blame: why it failed. */
  readonly blameless?: string;
}

/** A delivered group. */
export interface GroupRecord {
  readonly seq: number;
  readonly id: GroupId;
  readonly batch: BatchId;
  readonly taskIndex: number;
  readonly task: Task;
  readonly rollouts: readonly RolloutRecord[];
  /** The reward of members that failed, in a batch that penalises failures of the policy. */
  readonly penalty?: number;
  readonly carried: boolean;
  readonly deliveredAtMs: number;
}

export interface WebhookDue {
  readonly batch: BatchId;
  readonly url: string;
  readonly secret?: string;
  /** The place of the group to send next. */
  readonly seq: number;
  readonly attempts: number;
}

export interface WebhookHold {
  readonly batch: BatchId;
  readonly seq: number;
  readonly leaseMs: number;
  /** What the call before returned. */
  readonly heldUntilMs?: number;
}

export interface MoreTasks {
  readonly tasks: readonly Task[];
  /** No more tasks follow. */
  readonly closed: boolean;
  readonly key?: string | undefined;
}

export interface BatchStore {
  /** `known`: the same request arrived before, and nothing changed. */
  createBatch(batch: NewBatch): Promise<'created' | 'known' | 'conflict'>;
  /**
   * All or nothing, and once per key. `ended`: the batch accepts no more tasks because it is closed or has ended. `differs`: the
   * key was used before for something else, and nothing changed.
   */
  appendTasks(id: BatchId, more: MoreTasks): Promise<'appended' | 'ended' | 'unknown' | { readonly differs: string }>;
  batch(id: BatchId): Promise<BatchRecord | undefined>;
  /** In the order of creation; pass `next` as `after` to read the following page. */
  batches(filter: {
    readonly state?: BatchState;
    readonly series?: SeriesId;
    readonly after?: string;
    readonly limit: number;
  }): Promise<{ readonly batches: readonly BatchRecord[]; readonly next?: string }>;
  /** Ends the pause of a batch, if it is paused: it starts groups as before. */
  resumeBatch(id: BatchId): Promise<'resumed' | 'ended' | 'unknown'>;
  /**
   * Ends an open batch. Its open groups become surplus and their siblings are stopped. With `seen`, only if it has no open group
   * and nothing has begun or was added to its queue since: another server may have started a group meanwhile.
   */
  endBatch(id: BatchId, state: 'short' | 'cancelled', seen?: Pick<OpenBatch, 'begun' | 'waiting'>): Promise<boolean>;

  openBatches(): Promise<readonly OpenBatch[]>;
  openGroups(batch: BatchId): Promise<readonly OpenGroup[]>;
  groupTask(group: GroupId): Promise<Task | undefined>;
  /** Surplus groups of ended batches with the same series and recipe, those with the most rewards first. */
  surplusGroups(batch: BatchId, limit: number): Promise<readonly SurplusGroup[]>;
  /** The next tasks in the batch's queue, in order. */
  queuedTasks(batch: BatchId, limit: number): Promise<readonly { readonly taskIndex: number; readonly task: Task }[]>;
  cursor(name: string): Promise<number>;
  /**
   * Queued rollouts, rollouts from init to run and those that wait for evaluate (`active`), and the run slots of all live workers.
   * For a batch: its own rollouts, and the slots that are its fair share.
   */
  load(batch?: BatchId): Promise<{ readonly queued: number; readonly active: number; readonly slots: number }>;

  /** Adds the group and its rollouts and takes its task from the queue or cursor, in one transaction. False when it was added before, or is outdated. */
  beginGroup(group: NewGroup): Promise<boolean>;
  /** Carries a surplus group over to this batch and adds the siblings it lacks. False when the group is no longer surplus. */
  takeGroup(batch: BatchId, group: GroupId, rollouts: readonly NewRollout[]): Promise<boolean>;
  /** For a surplus group whose weights are too old: marks it stale and adds its task to this batch's queue. */
  renewGroup(batch: BatchId, group: GroupId): Promise<boolean>;
  /** Adds siblings to replace failed ones. False when the group has ended, or already has them. */
  replaceSiblings(group: GroupId, rollouts: readonly NewRollout[]): Promise<boolean>;
  /**
   * Ends an open group and stops its unfinished siblings. A delivered group gets the next place; the one that meets the target
   * also ends the batch, in the same transaction. The task of a stale group returns to the queue. So do
   * those of the groups that pause a batch, and of all that fail while it is paused. Any other verdict ends the pause. False when it had ended.
   */
  settleGroup(settlement: Settlement): Promise<boolean>;

  /** Delivered groups with places above `after`: at least one if there is one, and no more than `maxBytes` of stored trajectories. */
  deliveredGroups(
    batch: BatchId,
    options: { readonly after: number; readonly limit: number; readonly maxBytes?: number },
  ): Promise<readonly GroupRecord[]>;
  /** Returns the consumer's new position; absent when the batch is unknown. The position never decreases and never exceeds what was delivered. */
  ack(batch: BatchId, consumer: string, through: number): Promise<number | undefined>;
  acked(batch: BatchId, consumer: string): Promise<number>;

  /** The next group of each batch with a webhook, if it is due and no server holds it. `nextAtMs`: when the next postponed one is due. */
  dueWebhooks(): Promise<{ readonly due: readonly WebhookDue[]; readonly nextAtMs?: number }>;
  /**
   * Holds a delivery that is due for `leaseMs`, so that no other server sends it, or with `heldUntilMs` extends such a hold; with a
   * `leaseMs` of 0 it ends. Returns when the hold ends; absent if the delivery is not due, or is no longer held by the caller.
   */
  holdWebhook(hold: WebhookHold): Promise<number | undefined>;
  /** Records a delivery, or with `delayMs` a failure after which it is due again. */
  noteWebhook(sent: { readonly batch: BatchId; readonly seq: number; readonly delayMs?: number }): Promise<void>;
}
