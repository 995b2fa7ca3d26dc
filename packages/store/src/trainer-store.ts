// The part of the store's contract for what trainers post back: the numbers of their steps, and what they computed for tokens of rollouts.

import type { RolloutId, TrainerSample, TrainerStepView } from '@millrace/protocol';

/** A step as it is kept; the store knows its time and its number of samples. */
export type NewTrainerStep = Omit<TrainerStepView, 'at' | 'samples'>;

export type TrainerStepRecord = Omit<TrainerStepView, 'at'> & { readonly atMs: number };

interface TrainerSampleRecord {
  readonly run: string;
  readonly step: number;
  readonly policyVersion: number | null;
  readonly atMs: number;
  readonly sample: TrainerSample;
}

export interface PostedRun {
  readonly run: string;
  readonly steps: number;
  readonly newestAtMs: number;
}

export interface TrainerStepQuery {
  readonly run: string;
  readonly order: 'oldest' | 'newest';
  /** The step that the page before ended with. */
  readonly after?: number;
  readonly limit: number;
}

export interface TrainerStore {
  /** Replaces the same step of the same run with its samples, in one transaction with its event. Returns when it was stored. */
  putTrainerStep(step: NewTrainerStep, samples: readonly TrainerSample[]): Promise<number>;
  /** In the order of their numbers. */
  trainerSteps(query: TrainerStepQuery): Promise<readonly TrainerStepRecord[]>;
  /** The run with the newest step first. */
  trainerRuns(): Promise<readonly PostedRun[]>;
  /** The newest first. */
  trainerSamples(rollout: RolloutId): Promise<readonly TrainerSampleRecord[]>;
}
