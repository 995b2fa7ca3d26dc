// The part of the store's contract that batches, their groups and their delivery stand on. Every decision is one guarded
// transaction, so a decision that is made twice, or too late, changes nothing.

import type { BatchId, BatchRequest, BatchState, GroupId, GroupState, RolloutId, RolloutState, SeriesId, Waste } from '@millrace/protocol';
import type { NewRollout, RolloutRecord } from './rollout-record.ts';

export type Task = Readonly<Record<string, unknown>>;

/** What is kept of a request beside its tasks and its webhook. */
export type BatchPlan = Omit<BatchRequest, 'id' | 'tasks' | 'webhook' | 'closed'>;

export interface NewBatch {
  readonly id: BatchId;
  /** Tells a repeated request from another one under the same id. */
  readonly digest: string;
  readonly plan: BatchPlan;
  readonly tasks: readonly Task[];
  readonly closed: boolean;
  readonly webhook?: { readonly url: string; readonly secret?: string };
  /** Groups may pass only between batches that sample alike. */
  readonly recipe: string;
}

export interface BatchRecord {
  readonly id: BatchId;
  readonly plan: BatchPlan;
  readonly state: BatchState;
  readonly groups: Readonly<Record<GroupState, number>>;
  readonly carried: number;
  readonly tasks: { readonly given: number; readonly begun: number; readonly closed: boolean };
  readonly wasted: Readonly<Record<'uniform' | 'failed' | 'surplus' | 'stale', Waste>>;
  readonly createdAtMs: number;
  readonly endedAtMs?: number;
}

/** A batch as the one who fills it sees it. */
export interface OpenBatch {
  readonly id: BatchId;
  readonly plan: BatchPlan;
  readonly recipe: string;
  readonly closed: boolean;
  readonly delivered: number;
  readonly uniform: number;
  readonly failed: number;
  readonly begun: number;
  /** Tasks that wait in its own line: given ones, and those to be sampled again. */
  readonly waiting: number;
  /** The informative share of the batch before it in its series, over so many groups. */
  readonly before?: { readonly informative: number; readonly judged: number };
}

export interface Sibling {
  readonly id: RolloutId;
  readonly state: RolloutState;
  /** Somebody has asked it to stop: no reward is expected of it. */
  readonly stopping: boolean;
  readonly reward?: number;
  readonly firstVersion?: number;
}

export interface OpenGroup {
  readonly id: GroupId;
  readonly taskIndex: number;
  readonly replacements: number;
  readonly createdAtMs: number;
  /** Those that ended first come first. */
  readonly siblings: readonly Sibling[];
}

export interface KeptGroup extends OpenGroup {
  readonly task: Task;
}

export interface NewGroup {
  readonly id: GroupId;
  readonly batch: BatchId;
  /** How many groups of the batch were begun before it: it is begun only where that is still so. */
  readonly begun: number;
  readonly task: Task;
  readonly rollouts: readonly NewRollout[];
  /** The task is the next in the batch's own line, or was drawn by a cursor, which moves with it. */
  readonly from: { readonly kind: 'line' } | { readonly kind: 'cursor'; readonly name: string; readonly at: number; readonly to: number };
}

export interface Settlement {
  readonly group: GroupId;
  readonly batch: BatchId;
  readonly state: 'delivered' | 'uniform' | 'failed' | 'stale';
  /** Which siblings count, in order; of a delivered group only. */
  readonly members: readonly RolloutId[];
}

export interface DeliveredGroup {
  readonly seq: number;
  readonly id: GroupId;
  readonly batch: BatchId;
  readonly taskIndex: number;
  readonly task: Task;
  readonly rollouts: readonly RolloutRecord[];
  readonly carried: boolean;
  readonly deliveredAtMs: number;
}

export interface WebhookDue {
  readonly batch: BatchId;
  readonly url: string;
  readonly secret?: string;
  /** The place of the group that is to be sent now. */
  readonly seq: number;
  readonly attempts: number;
}

export interface MoreTasks {
  readonly tasks: readonly Task[];
  /** These were the last. */
  readonly closed: boolean;
  readonly key?: string | undefined;
}

export interface BatchStore {
  /** `known`: the same request came before, and nothing changed. */
  createBatch(batch: NewBatch): Promise<'created' | 'known' | 'conflict'>;
  /** All or nothing, and once for each key. `ended`: it takes no more tasks, because it was closed or is over. */
  appendTasks(id: BatchId, more: MoreTasks): Promise<'appended' | 'ended' | 'unknown'>;
  batch(id: BatchId): Promise<BatchRecord | undefined>;
  /** In the order of their beginning; `next` is the `after` of the following page. */
  batches(filter: {
    readonly state?: BatchState;
    readonly series?: SeriesId;
    readonly after?: string;
    readonly limit: number;
  }): Promise<{ readonly batches: readonly BatchRecord[]; readonly next?: string }>;
  /** Ends an open batch; its open groups become surplus, and their siblings are stopped (of a batch that ran short there are none). */
  endBatch(id: BatchId, state: 'short' | 'cancelled'): Promise<boolean>;

  openBatches(): Promise<readonly OpenBatch[]>;
  openGroups(batch: BatchId): Promise<readonly OpenGroup[]>;
  groupTask(group: GroupId): Promise<Task | undefined>;
  /** Surplus of ended batches of the same series that sampled alike, those with most rewards first. */
  keptGroups(batch: BatchId, limit: number): Promise<readonly KeptGroup[]>;
  /** The next tasks of the batch's own line, in order. */
  lineTasks(batch: BatchId, limit: number): Promise<readonly { readonly taskIndex: number; readonly task: Task }[]>;
  cursor(name: string): Promise<number>;
  /** Rollouts that wait for a run slot or hold one, those of them that are queued, and the run slots of all live workers. */
  load(): Promise<{ readonly queued: number; readonly active: number; readonly slots: number }>;

  /** The group and its rollouts, with the move of its task's line or cursor, in one transaction. False when that was done, or is no longer right. */
  beginGroup(group: NewGroup): Promise<boolean>;
  /** A surplus group passes to this batch, with the siblings that it lacks. False when it is no longer to be had. */
  takeGroup(batch: BatchId, group: GroupId, rollouts: readonly NewRollout[]): Promise<boolean>;
  /** A surplus group with weights that are too old: it is stale, and its task goes into this batch's line. */
  renewGroup(batch: BatchId, group: GroupId): Promise<boolean>;
  /** More siblings in place of failed ones. False when the group is over, or has them. */
  replaceSiblings(group: GroupId, rollouts: readonly NewRollout[]): Promise<boolean>;
  /**
   * Ends an open group and stops what still runs of it. A delivered one gets the next place; the one that meets the target ends
   * the batch and its surplus in the same transaction. A stale one's task goes back into the line. False when it was over.
   */
  settleGroup(settlement: Settlement): Promise<boolean>;

  /** Delivered groups with places above `after`. */
  deliveredGroups(batch: BatchId, options: { readonly after: number; readonly limit: number }): Promise<readonly DeliveredGroup[]>;
  /** Answers how far the consumer is now; absent when the batch is unknown. Never goes back, and never past what was delivered. */
  ack(batch: BatchId, consumer: string, through: number): Promise<number | undefined>;
  acked(batch: BatchId, consumer: string): Promise<number>;

  /** Of each batch with a webhook the next group, where it is due. `nextAtMs`: when to look again for those that are put off. */
  dueWebhooks(): Promise<{ readonly due: readonly WebhookDue[]; readonly nextAtMs?: number }>;
  /** It arrived; or it did not, and is due again after `delayMs`. */
  noteWebhook(sent: { readonly batch: BatchId; readonly seq: number; readonly delayMs?: number }): Promise<void>;
}
