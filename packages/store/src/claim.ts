// What a worker holds, how it ends, and what happens to it if the worker is lost.

import type { Failure, RolloutId, RolloutResult, Trajectory, WorkerId } from '@millrace/protocol';

/** One worker's right to write one attempt of a rollout. A write under an outdated claim changes nothing. */
export interface Claim {
  readonly id: RolloutId;
  readonly worker: WorkerId;
  readonly attempt: number;
}

/** No rollout waits longer than this before it is retried. */
export const longestDelayMs = 60_000;

/** For how long a rollout is passed over because its siblings run on another machine. */
export const longestPassMs = 5_000;

/** What happens to a rollout that lost its worker. */
export interface LossRules {
  /** At this many losses it fails with `worker-lost`. */
  readonly maxLosses: number;
  /**
   * How long it waits after the first loss; twice as long after each further one, up to `longestDelayMs`. None unless set. The time
   * until a lease ended counts.
   */
  readonly retryDelayMs?: number;
}

/** What a worker holds, as it names it in a renewal. */
export interface HeldClaims extends LossRules {
  readonly claims: readonly Pick<Claim, 'id' | 'attempt'>[];
}

/** A trajectory in its binary format, compressed: the worker that sent it packed it. */
export interface PackedTrajectory {
  readonly bytes: Uint8Array;
  /** Of the content, in hexadecimal. */
  readonly sha256: string;
}

/** A `done` rollout with a failure: the agent caused it, and the reward is the lowest of its scenario. */
export type Ending = KeptTurns &
  (
    | {
        readonly state: 'done';
        readonly result: RolloutResult;
        readonly trajectory: Trajectory | PackedTrajectory;
        readonly failure?: Failure;
      }
    | {
        readonly state: 'failed';
        readonly failure: Failure;
        readonly result?: RolloutResult;
        readonly trajectory?: Trajectory | PackedTrajectory;
      }
    | { readonly state: 'cancelled'; readonly result?: RolloutResult; readonly trajectory?: Trajectory | PackedTrajectory }
  );

interface KeptTurns {
  /** The turn log is kept, for forks. */
  readonly keepsTurns?: true;
}
