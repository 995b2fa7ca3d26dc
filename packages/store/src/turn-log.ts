// The turn log: what each finished turn of a running rollout added, so that its next attempt continues after it, and forks begin after it. It
// belongs to the rollout and is gone when the rollout ends, unless its end says that it is kept: then it is there as long as the rollout.

import type { RolloutId, WorkerId } from '@millrace/protocol';

/** The claim of the attempt that continues. */
interface ContinuingClaim {
  readonly id: RolloutId;
  readonly worker: WorkerId;
  readonly attempt: number;
}

export interface LoggedTurn {
  /** From 1. */
  readonly turn: number;
  /** The attempt that sampled it; 0 for a turn that a fork shares with the rollout that it is a fork of. */
  readonly attempt: number;
  readonly body: Uint8Array;
}

/** New turns of one rollout. */
export interface TurnAppend {
  readonly id: RolloutId;
  readonly attempt: number;
  /** The first append of an attempt: it continued after this turn, and the turns that earlier attempts left after it are deleted; 0 if it began again. */
  readonly after?: number;
  readonly turns: readonly Omit<LoggedTurn, 'attempt'>[];
}

export interface TurnLog {
  /**
   * Appends new turns of rollouts that the worker runs, in one transaction. What it does not run under this attempt is ignored, and so is
   * everything from a worker that has ended. A turn that was there is replaced. Returns the rollouts whose turns were written.
   */
  appendTurns(worker: WorkerId, appends: readonly TurnAppend[]): Promise<readonly RolloutId[]>;
  /** The turns that earlier attempts of a claimed rollout left, in order. Empty if the claim is outdated. */
  loggedTurns(claim: ContinuingClaim): Promise<readonly LoggedTurn[]>;
  /** All turns of a rollout that the log has, of all its attempts. */
  savedTurns(id: RolloutId): Promise<readonly LoggedTurn[]>;
}
