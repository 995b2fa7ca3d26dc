// What a viewer without a service reads from: files of results, a store, or for an export also a service.

import type { RolloutIndex } from '@millrace/dashboard';
import type { DashboardTask, Event, RolloutView, TokenPieces, TrajectoryView } from '@millrace/protocol';

export interface ViewSource extends AsyncDisposable {
  readonly title: string;
  /** Adds every rollout, the oldest first. Returns how many lines hold none. */
  fill(index: RolloutIndex): Promise<number>;
  /** These throw `not-found` for what is not there. */
  rollout(id: string): Promise<RolloutView>;
  trajectory(id: string): Promise<TrajectoryView>;
  task(id: string): Promise<DashboardTask>;
  events(id: string): Promise<Event[]>;
  /** The text of each token of a trajectory that was read here. */
  pieces(trajectory: TrajectoryView): Promise<TokenPieces>;
}

export interface ViewSourceOptions {
  readonly path: string;
  /** The folder of the model, for the text of single tokens. */
  readonly tokenizer: string | undefined;
  /** Where the trajectories of a store are, as `store.blobs` names it. */
  readonly blobs: string;
}
