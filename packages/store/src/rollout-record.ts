// A rollout as it enters the store, and as the store keeps it.

import type { Failure, GroupId, MachineLabels, RolloutId, RolloutResult, RolloutState, Submission, WorkerId } from '@millrace/protocol';

/** A submission with its id. `digest` distinguishes a repeated submission from a different one with the same id. */
export interface NewRollout {
  readonly id: RolloutId;
  readonly submission: Submission;
  readonly digest: string;
}

export interface RolloutRecord {
  readonly id: RolloutId;
  readonly submission: Submission;
  /** Of the submission, as its caller wrote it. */
  readonly digest: string;
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
  /** While it is queued: what a machine must have to claim it. */
  readonly requires?: MachineLabels;
}
