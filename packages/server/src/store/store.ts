// The store's contract: every promise about what is kept, who may write it, and what a crash can undo (nothing that was
// answered). Two engines keep it, and one suite in testkit proves it.

import type {
  BackendId,
  Event,
  EventKind,
  Failure,
  GroupId,
  PauseMode,
  RolloutId,
  RolloutResult,
  RolloutState,
  Submission,
  Trajectory,
  WorkerId,
  WorkerReport,
} from '@millrace/protocol';
import type { BackendRecord, NewBackend } from '../inference/backends/backend.ts';
import type { PolicyRecord } from '../inference/policy-gate.ts';
import type { BackendLoad, Placements } from '../inference/pool/placements.ts';
import type { BatchStore } from './batch-store.ts';

/** A submission that has its id. `digest` tells a repeated submission from another one under the same id. */
export interface NewRollout {
  readonly id: RolloutId;
  readonly submission: Submission;
  readonly digest: string;
}

export interface RolloutRecord {
  readonly id: RolloutId;
  readonly submission: Submission;
  readonly group?: GroupId;
  readonly state: RolloutState;
  readonly attempt: number;
  readonly retries: number;
  readonly losses: number;
  readonly worker?: WorkerId;
  readonly result?: RolloutResult;
  readonly failure?: Failure;
  readonly failures: readonly Failure[];
  readonly createdAtMs: number;
  readonly endedAtMs?: number;
}

/** One worker's right to write one attempt of a rollout. A write under a claim that has passed to another changes nothing. */
export interface Claim {
  readonly id: RolloutId;
  readonly worker: WorkerId;
  readonly attempt: number;
}

export interface ClaimedRollout extends Claim {
  readonly submission: Submission;
  /** Failures already tried again. */
  readonly retries: number;
  readonly createdAtMs: number;
  /** When it last became queued; what it waited since is queue time. */
  readonly queuedAtMs: number;
}

export type SubmitOutcome =
  | { readonly kind: 'accepted'; readonly rollouts: readonly { id: RolloutId; state: RolloutState; created: boolean }[] }
  | { readonly kind: 'conflict'; readonly ids: readonly RolloutId[] }
  | { readonly kind: 'full'; readonly queued: number };

export type Ending =
  | { readonly state: 'done'; readonly result: RolloutResult; readonly trajectory: Trajectory }
  | { readonly state: 'failed'; readonly failure: Failure; readonly result?: RolloutResult; readonly trajectory?: Trajectory }
  | { readonly state: 'cancelled'; readonly result?: RolloutResult; readonly trajectory?: Trajectory };

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
  /** What the worker last said of itself; absent until its first renewal. */
  readonly report?: WorkerReport;
}

export interface ListFilter {
  readonly state?: RolloutState;
  readonly group?: GroupId;
  readonly scenario?: string;
  readonly after?: string;
  readonly limit: number;
}

/** What a worker heard of its rollouts and backends, told with its turns. */
export interface TrafficNotes {
  readonly contexts: readonly { readonly claim: Claim; readonly tokens: number }[];
  readonly errors: readonly { readonly backend: BackendId; readonly message: string }[];
}

/** With `place` and the health of backends as `Placements` says. */
export interface Store extends BatchStore, Placements, AsyncDisposable {
  // Callers.

  /**
   * Accepts all or nothing, in one transaction. A known id with the same digest is answered with its state and changes
   * nothing; with another digest it is a conflict. An id that was cancelled before it arrived is created as cancelled.
   * `full` when the queue would pass `maxQueued`: nothing is accepted (repeats of known ids never count).
   */
  submit(rollouts: readonly NewRollout[], options: { readonly maxQueued: number }): Promise<SubmitOutcome>;
  /**
   * `cancelled`: it is over now (it was queued, or it had not arrived and is remembered for `tombstoneMs`).
   * `asked`: a worker holds it and has been told. `ended`: it was over before.
   */
  cancel(id: RolloutId, options: { readonly tombstoneMs: number }): Promise<'cancelled' | 'asked' | 'ended'>;
  get(id: RolloutId): Promise<RolloutRecord | undefined>;
  /** In the order of submission; `next` is the `after` of the following page. */
  list(filter: ListFilter): Promise<{ readonly rollouts: readonly RolloutRecord[]; readonly next?: string }>;
  trajectory(id: RolloutId): Promise<Trajectory | undefined>;
  /** Rollouts by state. */
  counts(): Promise<Record<RolloutState, number>>;

  // Workers.

  registerWorker(
    worker: { readonly id: WorkerId; readonly host: string; readonly pid: number },
    options: { readonly leaseMs: number },
  ): Promise<void>;
  /**
   * Prolongs the lease of everything the worker holds, and keeps its report. `alive` is false when the lease had run out
   * and was taken away: the worker must drop what it holds and register under a new id. `cancelled` are the claims of this
   * worker that a caller has asked to cancel.
   */
  renew(
    worker: WorkerId,
    options: { readonly leaseMs: number; readonly report: WorkerReport },
  ): Promise<{ readonly alive: boolean; readonly cancelled: readonly RolloutId[] }>;
  /** Takes up to `limit` queued rollouts, oldest first: state init, attempt raised by one. Nothing for a worker whose lease ran out. */
  claim(worker: WorkerId, limit: number): Promise<readonly ClaimedRollout[]>;
  /** Moves a claimed rollout along the table of legal moves. False when fenced: the claim is no longer this worker's. */
  move(claim: Claim, to: 'ready' | 'run' | 'evaluate'): Promise<boolean>;
  /** Ends it: state, result, failure and trajectory in one transaction. False when fenced: nothing was written. */
  finish(claim: Claim, ending: Ending): Promise<boolean>;
  /** Sends it back to the queue after a retryable failure, not to be claimed before `delayMs`; counted and kept in `failures`. False when fenced. */
  retry(claim: Claim, failure: Failure, options: { readonly delayMs: number }): Promise<boolean>;
  /** Hands it back unharmed, as at a shutdown: to the queue, with nothing charged. False when fenced. */
  release(claim: Claim): Promise<boolean>;
  /** The worker is known to be gone: what it holds is treated as `expire` does, at once. */
  dropWorker(worker: WorkerId, options: { readonly maxLosses: number }): Promise<void>;
  /**
   * Sends back what belongs to workers whose lease ran out, a loss counted on each; a rollout that reaches `maxLosses`
   * fails as worker-lost; one that was asked to cancel is cancelled. Answers how many rollouts were touched.
   */
  expire(options: { readonly maxLosses: number }): Promise<number>;
  workers(): Promise<readonly WorkerRecord[]>;

  // Backends.

  joinBackend(backend: NewBackend): Promise<void>;
  /** False when it is not known. */
  drainBackend(id: BackendId): Promise<boolean>;
  leaveBackend(id: BackendId): Promise<boolean>;
  clearBackends(): Promise<number>;
  backends(): Promise<readonly BackendRecord[]>;
  /** What runs on each backend now; those on which nothing runs are left out. */
  backendLoads(): Promise<readonly BackendLoad[]>;
  /** Keeps them for the views and for placing, with no event. What is fenced or gone is left out. */
  noteTraffic(notes: TrafficNotes): Promise<void>;

  // The policy's weights.

  policy(): Promise<PolicyRecord>;
  /**
   * `pausing` until every worker that is not ended has told that it heard of this pause and has no call under way, then
   * `paused`. A pause under way is kept, or made stricter: from wait to abort.
   */
  pausePolicy(request: { readonly mode: PauseMode }): Promise<PolicyRecord>;
  /** Sets the version of the policy and of all backends in one transaction. A conflict when it is lower than the present one. */
  resumePolicy(request: { readonly policyVersion?: number; readonly cachesFlushed: boolean }): Promise<PolicyRecord>;
  /** What the worker's gate says: the newest pause that it has heard of, and its calls under way. Nothing for a worker that is ended. */
  reportGate(worker: WorkerId, report: { readonly pause: number; readonly generating: number }): Promise<void>;

  // The event log. All methods above write their own events in the same transaction.

  /** For what has no row of its own, such as turns. Durable when it resolves, but nobody need wait. */
  appendEvents(events: readonly NewEvent[]): Promise<void>;
  /**
   * Events with ids above `after`, in order, only of `kinds` where they are given; `last` is the id up to which the log was
   * read, to go on from. Ids grow by commit order: a reader that has seen n never misses one below n.
   */
  events(
    after: number,
    options: { readonly limit: number; readonly kinds?: readonly EventKind[] },
  ): Promise<{ readonly events: readonly Event[]; readonly last: number }>;
  /** The id of the newest event; 0 when there is none. */
  lastEventId(): Promise<number>;
  /** Calls back soon after any process has changed the store; a hint that may come late, twice or in vain, never an answer. Returns a function that stops it. */
  onHint(listener: () => void): () => void;

  /**
   * Deletes rollouts that ended, with their trajectories, and events, tombstones and dead workers, older than the ages given.
   * Rollouts of groups go with their batch: when its end is older than `endedMs` and every consumer that ever acknowledged has
   * acknowledged all of it, or it is ten times as old. Answers how many rollouts went.
   */
  retain(options: { readonly endedMs: number; readonly eventsMs: number }): Promise<number>;
}
