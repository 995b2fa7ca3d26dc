// Delivered groups and trajectories as JSON, in pieces, so that neither a long trajectory nor a large page blocks the event loop or has
// to fit into memory.

import { scheduler } from 'node:timers/promises';
import { RolloutError, type RolloutId, type Trajectory, toSegmentView, toTrajectoryView } from '@millrace/protocol';
import type { GroupRecord } from '../store/batch-store.ts';
import type { Store } from '../store/store.ts';
import { toGroupView } from './group-view.ts';

const pieceCharacters = 1 << 16;

/** A group with its trajectories; the same as the JSON of a `GroupView`. */
export async function* toGroupJson(group: GroupRecord, store: Pick<Store, 'trajectory'>): AsyncGenerator<string> {
  yield `${JSON.stringify(toGroupView(group)).slice(0, -1)},"trajectories":[`;
  for (const [index, { id }] of group.rollouts.entries()) {
    if (index > 0) yield ',';
    yield* toTrajectoryJson((await store.trajectory(id)) ?? missing(id));
  }
  yield ']}';
}

/** The same as the JSON of a `TrajectoryView`. */
export async function* toTrajectoryJson(trajectory: Trajectory): AsyncGenerator<string> {
  const { segments: _, ...head } = toTrajectoryView({ ...trajectory, segments: [] });
  let piece = `${JSON.stringify(head).slice(0, -1)},"segments":[`;
  for (const [index, segment] of trajectory.segments.entries()) {
    piece += `${index > 0 ? ',' : ''}${JSON.stringify(toSegmentView(segment))}`;
    if (piece.length < pieceCharacters) continue;
    yield piece;
    piece = '';
    await scheduler.yield();
  }
  yield `${piece}]}`;
}

/** Every member of a delivered group has a trajectory, until its batch is deleted. */
export function missing(id: RolloutId): never {
  throw new RolloutError('internal', `the trajectory of rollout ${id} was deleted while it was sent`);
}
