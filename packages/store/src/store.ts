// The store's contract: what is stored, who may write it, and what survives a crash (everything that was acknowledged).
// The contract suite in testkit checks every implementation.

import type { BackendRecord, NewBackend } from '@millrace/engines';
import type {
  BackendId,
  BatchId,
  Event,
  EventKind,
  Failure,
  GroupId,
  MachineLabels,
  PauseMode,
  RolloutId,
  RolloutResult,
  RolloutState,
  Submission,
  Trajectory,
  WorkerId,
  WorkerReport,
} from '@millrace/protocol';
import type { BackendLoad, CacheSize, OldestOn, Placements } from './backends/placements.ts';
import type { PolicyRecord, ResumePolicy } from './backends/policy-record.ts';
import type { BatchStore } from './batch-store.ts';
import type { Claim, Ending, HeldClaims, LossRules, PackedTrajectory } from './claim.ts';
import type { EvaluationStore } from './evaluation-store.ts';
import type { RetentionAges } from './retention-ages.ts';
import type { NewRollout, RolloutRecord } from './rollout-record.ts';
import type { ServerStore } from './servers/server-store.ts';
import type { TrainerStore } from './trainer-store.ts';
import type { TurnLog } from './turn-log.ts';
import type { ClassLoad, WorkClass } from './work-class.ts';

export interface ClaimedRollout extends Claim {
  readonly submission: Submission;
  /** Failed attempts that were retried. */
  readonly retries: number;
  readonly createdAtMs: number;
  /** When it last entered the queue. */
  readonly queuedAtMs: number;
  /** Of its earlier attempts. */
  readonly failures: readonly Failure[];
  /** It lost two workers in evaluate, and is alone on this one, which calls `endIfLost` before it judges it. */
  readonly isJudgedApart: boolean;
}

export type SubmitOutcome =
  | { readonly kind: 'accepted'; readonly rollouts: readonly { id: RolloutId; state: RolloutState; created: boolean }[] }
  | { readonly kind: 'conflict'; readonly ids: readonly RolloutId[] }
  | { readonly kind: 'full'; readonly queued: number };

/** The call may be the second of its kind, because the reply to the first was lost; and moves before it may be lost, because the database crashed. */
export interface Repeat {
  readonly isRepeated?: boolean;
}

export interface NewEvent {
  readonly kind: EventKind;
  readonly rolloutId?: RolloutId;
  readonly group?: GroupId;
  readonly workerId?: WorkerId;
  readonly backendId?: BackendId;
  readonly data: Record<string, unknown>;
}

export interface WorkerRecord {
  readonly id: WorkerId;
  readonly host: string;
  readonly pid: number;
  readonly startedAtMs: number;
  readonly leaseUntilMs: number;
  /** It gave up its lease or lost it, whatever date `leaseUntilMs` shows. */
  readonly hasEnded: boolean;
  /** The worker's latest report; absent until it first renews its lease. */
  readonly report?: WorkerReport;
}

export interface StoreSize {
  readonly fileBytes: number;
  readonly walBytes: number;
  /** Inside the file: pages of deleted rows, which new rows will use. */
  readonly reusableBytes: number;
  readonly freeBytes: number;
  /** Why the store is full and what to do; absent while it is not. */
  readonly full?: string;
}

export interface ListFilter {
  readonly state?: RolloutState;
  readonly group?: GroupId;
  /** The batch that sampled it. */
  readonly batch?: BatchId;
  readonly scenario?: string;
  /** Rollouts whose id begins with this, in the order of their ids instead of their submission. */
  readonly prefix?: string;
  /** The order of submission: `oldest` first unless set. */
  readonly order?: 'oldest' | 'newest';
  readonly after?: string;
  readonly limit: number;
}

/** Context lengths and backend errors that a worker observed. */
export interface TrafficNotes {
  readonly contexts: readonly { readonly claim: Claim; readonly tokens: number }[];
  readonly errors: readonly { readonly backend: BackendId; readonly message: string }[];
}

/** `Placements` specifies placing rollouts and the health of backends. */
export interface Store extends BatchStore, EvaluationStore, Placements, ServerStore, TurnLog, AsyncDisposable {
  // Callers.

  /**
   * Accepts all rollouts or none, in one transaction. For a known id with the same digest it returns the current state and
   * changes nothing; with a different digest it returns a conflict. An id that was cancelled before it arrived is created as
   * cancelled. Returns `full` and accepts nothing when the queue would exceed `maxQueued`; known ids do not count. Throws
   * `store-full` for new ids while the store is full; so do `createBatch` and `appendTasks`. The rollouts belong to `workClass`,
   * or to the plain submissions without a key.
   */
  submit(rollouts: readonly NewRollout[], options: { readonly maxQueued: number; readonly workClass?: WorkClass }): Promise<SubmitOutcome>;
  /**
   * `cancelled`: it has ended. It was queued, or its submission has not arrived yet and the id is remembered for `tombstoneMs`.
   * `asked`: a worker holds it and is notified. `ended`: it had already ended.
   */
  cancel(id: RolloutId, options: { readonly tombstoneMs: number }): Promise<'cancelled' | 'asked' | 'ended'>;
  get(id: RolloutId): Promise<RolloutRecord | undefined>;
  /** Pass `next` as `after`, with the same filter, to read the following page. */
  list(filter: ListFilter): Promise<{ readonly rollouts: readonly RolloutRecord[]; readonly next?: string }>;
  /** Throws `trajectory-missing` if its blob is gone, `trajectory-corrupt` if it is not what was stored, and a StoreFault if the blob store fails. */
  trajectory(id: RolloutId): Promise<Trajectory | undefined>;
  /** The trajectory in its binary format. */
  binaryTrajectory(id: RolloutId): Promise<Buffer | undefined>;
  /** Rollouts by state. */
  counts(): Promise<Record<RolloutState, number>>;
  /** The classes with queued or active rollouts, in the order of their ranks. */
  classes(): Promise<readonly ClassLoad[]>;

  // Workers.

  registerWorker(
    worker: { readonly id: WorkerId; readonly host: string; readonly pid: number },
    options: { readonly leaseMs: number },
  ): Promise<void>;
  /**
   * Renews the worker's lease, which covers everything it holds, and stores its report. `alive` is false when the lease
   * expired and was revoked: the worker must drop what it holds and register under a new id. `cancelled` lists the rollouts
   * of this worker that a caller asked to cancel. With `held`, the store takes back what it counts as this worker's and the
   * worker does not name, by the rules of `expire`: no `claim` of the worker may be under way.
   */
  renew(
    worker: WorkerId,
    options: { readonly leaseMs: number; readonly report: WorkerReport; readonly held?: HeldClaims },
  ): Promise<{ readonly alive: boolean; readonly cancelled: readonly RolloutId[] }>;
  /**
   * Takes up to `limit` queued rollouts, moves them to init and increments their attempt. Higher priorities go first; within one,
   * replacements and the last groups of a batch; then the class with the fewest active rollouts for its weight, its oldest first.
   * Rollouts that require labels are passed over unless `labels`, those of the worker's machine, has them. Empty for a worker whose
   * lease expired, and while the store is full.
   *
   * With workers on several machines (`host`), rollouts whose siblings run on another machine go after those whose siblings run on this
   * one, and after groups that run nowhere, so that siblings share what a machine has prepared. A rollout that was passed over for
   * `longestPassMs` goes before all of these.
   */
  claim(worker: WorkerId, limit: number, labels?: MachineLabels): Promise<readonly ClaimedRollout[]>;
  /**
   * The rollouts in init of a live worker that it does not name: the reply to their claim was lost. No claim of the worker may be under way.
   */
  unanswered(worker: WorkerId, named: readonly Pick<Claim, 'id' | 'attempt'>[]): Promise<readonly ClaimedRollout[]>;
  /**
   * Moves a claimed rollout to its next state. False when fenced: the claim no longer belongs to this worker. A repeated move to where the
   * rollout is changes nothing and is true.
   */
  move(claim: Claim, to: 'ready' | 'run' | 'evaluate', options?: Repeat): Promise<boolean>;
  /**
   * For a rollout in evaluate that is judged apart, once its worker judged an agent that did nothing: if the worker dies now, the rollout
   * is done with this result and `policy-failed`. Any other write about the rollout drops this, and so does the end of a worker whose
   * last report says `draining`. False when fenced.
   */
  endIfLost(
    claim: Claim,
    ending: { readonly result: RolloutResult; readonly trajectory: Trajectory | PackedTrajectory },
    options?: Repeat,
  ): Promise<boolean>;
  /**
   * Ends it: writes state, result, failure and trajectory in one transaction. False when fenced: nothing was written. True for a repeated call
   * if the rollout ended in this way under this attempt.
   */
  finish(claim: Claim, ending: Ending, options?: Repeat): Promise<boolean>;
  /** Returns it to the queue after a retryable failure, which is counted and added to `failures`. It can be claimed after `delayMs`. False when fenced. */
  retry(claim: Claim, failure: Failure, options: { readonly delayMs: number }): Promise<boolean>;
  /**
   * Returns it to the queue, for example at shutdown, without counting a retry or a loss. With `requires`, only machines that have these
   * labels too claim it from now on. False when fenced.
   */
  release(claim: Claim, options?: { readonly requires?: MachineLabels }): Promise<boolean>;
  /** For a worker that is known to be gone: requeues or ends what it holds immediately, by the rules of `expire`. */
  dropWorker(worker: WorkerId, rules: LossRules): Promise<void>;
  /**
   * Requeues the rollouts of workers whose lease expired, and counts a loss on each. A rollout that reaches `maxLosses` fails
   * with `worker-lost`; one that was asked to cancel is cancelled. Returns the number of rollouts affected. After the date
   * stepped, or the store stalled for half of `leaseMs`, it expires nothing and every lease runs for `leaseMs` again.
   *
   * A rollout with two losses is a suspect. Suspects run on a worker that holds nothing else, a few together after the second
   * loss, and alone after the third, or if both were in evaluate; see `endIfLost`. One that loses its worker again and again while alone (a fifth of `maxLosses`, at least
   * twice) fails: it is the cause.
   */
  expire(options: LossRules & { readonly leaseMs: number }): Promise<number>;
  workers(): Promise<readonly WorkerRecord[]>;

  // Backends.

  joinBackend(backend: NewBackend): Promise<void>;
  /** False when the id is unknown. */
  drainBackend(id: BackendId): Promise<boolean>;
  leaveBackend(id: BackendId): Promise<boolean>;
  clearBackends(): Promise<number>;
  backends(): Promise<readonly BackendRecord[]>;
  /** What runs on each backend; idle backends are omitted. */
  backendLoads(): Promise<readonly BackendLoad[]>;
  oldestOn(worker: WorkerId, caches: readonly CacheSize[]): Promise<readonly OldestOn[]>;
  /** Stores the observations for views and for placing, without an event. Ignores outdated claims and unknown backends. */
  noteTraffic(notes: TrafficNotes): Promise<void>;

  // The policy's weights.

  policy(): Promise<PolicyRecord>;
  /**
   * `pausing` until every live worker has reported that it saw this pause and has no call in progress, then `paused`. Pausing
   * again can only make the mode stricter: from wait to abort.
   */
  pausePolicy(request: { readonly mode: PauseMode; readonly owner?: string }): Promise<PolicyRecord>;
  /** Sets the version of the policy and of all backends in one transaction. A lower version is a conflict unless it is allowed. */
  resumePolicy(request: ResumePolicy): Promise<PolicyRecord>;
  /** Stores a worker's gate report: the newest pause it has seen, and its calls in progress. Ignored for a worker that has ended. */
  reportGate(worker: WorkerId, report: { readonly pause: number; readonly generating: number }): Promise<void>;

  readonly trainer: TrainerStore;

  // The event log. All methods above write their own events in the same transaction; they can be read a moment later.

  /** For events without a row. Durable when it resolves, but a crash of PostgreSQL may take back the last turns, moves and placements. */
  appendEvents(events: readonly NewEvent[]): Promise<void>;
  /**
   * Events with ids above `after`, in order, filtered by `kinds` if given. `last` is the id up to which the log was read; pass
   * it as the next `after`. Ids increase in commit order: a reader that has seen n never misses one below n.
   */
  events(
    after: number,
    options: { readonly limit: number; readonly kinds?: readonly EventKind[] },
  ): Promise<{ readonly events: readonly Event[]; readonly last: number }>;
  /** The id of the newest event; 0 when there is none. */
  lastEventId(): Promise<number>;
  /** The id of the oldest event that is kept; that of the next event when none is. */
  oldestEventId(): Promise<number>;
  /** Writes a little and reads what is free on the disk. Throws a StoreFault when the store cannot be written. */
  checkHealth(): Promise<StoreSize>;
  /** Bytes of the file, of its write-ahead log, and free on its disk; and whether that makes the store full. */
  size(): Promise<StoreSize>;
  /** Calls back soon after any process changed the store. It is only a hint: it may be late, repeated or unnecessary. Returns an unsubscribe function. */
  onHint(listener: () => void): () => void;

  /**
   * Deletes finished rollouts with their trajectories, and events, tombstones and ended workers, older than the given ages.
   * Rollouts of a group are deleted with their batch: once it ended more than `endedMs` ago, its webhook got all of its groups,
   * and every consumer that ever acknowledged a group has acknowledged all of them, or once it is ten times as old. With an age for an
   * outcome, groups of that outcome are deleted at that age after the end of their batch; the batch goes with the last of them.
   * Reading a delivered group that was deleted before its batch throws `gone`. Rollouts of an evaluation are deleted with it, once it
   * ended more than `endedMs` ago. What a trainer computed for tokens goes at `endedMs`, its steps at ten times that. From `textMs` on,
   * trajectories have no text. Returns the number of rollouts deleted.
   * After the date stepped, it deletes nothing until as much time has passed as anything is kept.
   */
  retain(ages: RetentionAges): Promise<number>;
  /**
   * Removes blobs of deleted trajectories from the blob store, if there is one; with `sweep` also those that no row ever referred to.
   * Returns how many.
   */
  removeBlobs(options: { readonly sweep: boolean }): Promise<number>;
}
