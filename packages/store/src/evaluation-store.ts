// The part of the store's contract for evaluations: a fixed set of tasks, n samples of each, and counts that are kept as samples end.
// Every change is one guarded transaction, so a change that is repeated or too late does nothing.

import type {
  EvaluationFailure,
  EvaluationId,
  EvaluationRequest,
  EvaluationState,
  Failure,
  RolloutId,
  RolloutState,
  StopReason,
} from '@millrace/protocol';
import type { Task } from './batch-store.ts';
import type { NewRollout } from './rollout-record.ts';

/** A request without its tasks. */
export type EvaluationPlan = Omit<EvaluationRequest, 'id' | 'tasks'>;

export interface NewEvaluation {
  readonly id: EvaluationId;
  /** Distinguishes a repeated request from a different one with the same id. */
  readonly digest: string;
  readonly plan: EvaluationPlan;
  /** `correctAt`: the reward from which a sample of the task is correct. */
  readonly tasks: readonly { readonly task: Task; readonly correctAt: number }[];
}

/** Rewards are sums of decimal fractions: one that is this close to the threshold has reached it. */
export const correctTolerance = 1e-9;

/** Tasks with equal counts of samples. */
export interface ScoreCount {
  readonly ended: number;
  /** With a reward. */
  readonly scored: number;
  readonly correct: number;
  readonly tasks: number;
}

export interface EvaluationRecord {
  readonly id: EvaluationId;
  readonly plan: EvaluationPlan;
  readonly state: EvaluationState;
  readonly tasks: number;
  /** Tasks whose samples were added to the queue. */
  readonly begunTasks: number;
  readonly scores: readonly ScoreCount[];
  readonly rewards: {
    readonly sum: number;
    /** The sum over tasks of (sum of its rewards - its number of rewards × the mean reward)²: what the clustered error is made of. */
    readonly squares: number;
  };
  /** The most frequent first. */
  readonly failures: readonly EvaluationFailure[];
  readonly stopReasons: Readonly<Partial<Record<StopReason, number>>>;
  readonly turns: number;
  readonly sampledTokens: number;
  readonly versions?: { readonly first: number; readonly last: number };
  readonly createdAtMs: number;
  readonly endedAtMs?: number;
}

/** An open evaluation with tasks that have not begun. */
export interface UnbegunEvaluation {
  readonly id: EvaluationId;
  readonly plan: EvaluationPlan;
  readonly tasks: number;
  readonly begunTasks: number;
  /** Its samples that no worker has claimed. */
  readonly queued: number;
}

export interface SampleRecord {
  readonly id: RolloutId;
  readonly state: RolloutState;
  readonly reward?: number;
  readonly stopReason?: StopReason;
  readonly failure?: Pick<Failure, 'blame' | 'code' | 'message'>;
}

export interface TaskRecord {
  readonly index: number;
  readonly task: Task;
  readonly correctAt: number;
  readonly scored: number;
  readonly correct: number;
  readonly rewardSum: number;
  readonly samples: readonly SampleRecord[];
}

export interface EvaluationStore {
  /** `known`: the same request arrived before, and nothing changed. */
  createEvaluation(evaluation: NewEvaluation): Promise<'created' | 'known' | 'conflict'>;
  evaluation(id: EvaluationId): Promise<EvaluationRecord | undefined>;
  /** In the order of creation; pass `next` as `after` to read the following page. */
  evaluations(filter: {
    readonly state?: EvaluationState;
    readonly after?: string;
    readonly limit: number;
  }): Promise<{ readonly evaluations: readonly EvaluationRecord[]; readonly next?: string }>;
  /** The tasks from index `from` on, with their samples so far. Empty for an unknown evaluation. */
  evaluationTasks(id: EvaluationId, page: { readonly from: number; readonly limit: number }): Promise<readonly TaskRecord[]>;
  unbegunEvaluations(): Promise<readonly UnbegunEvaluation[]>;
  /**
   * Adds the samples of the next tasks to the queue, as a class of work of their evaluation. `samples[i]` are those of the task with the
   * index `begun + i`. A sample whose id is used by another rollout ends at once, without a reward. False when `begun` is not the number
   * of tasks begun, or the evaluation has ended.
   *
   * The end of a sample is counted in the transaction that writes it; the last one ends the evaluation.
   */
  beginTasks(id: EvaluationId, next: { readonly begun: number; readonly samples: readonly (readonly NewRollout[])[] }): Promise<boolean>;
  /**
   * Takes up to `limit` samples that ended without a reward again: each is replaced by a new rollout of the same task, and what it was
   * counted as is subtracted. An evaluation that was done is open again. Returns how many; 0 when every ended sample has a reward.
   */
  retryUnscored(id: EvaluationId, options: { readonly limit: number }): Promise<number | 'unknown' | 'cancelled'>;
  /** Ends an open evaluation and stops its samples; what ended before stays counted. False when it is unknown or has ended. */
  cancelEvaluation(id: EvaluationId): Promise<boolean>;
}
