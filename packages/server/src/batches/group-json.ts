// Delivered groups and trajectories as JSON, in pieces, so that neither a long trajectory nor a large page blocks the event loop or has
// to fit into memory.

import { scheduler } from 'node:timers/promises';
import {
  addSegment,
  type LostTrajectory,
  openChecksum,
  RolloutError,
  type RolloutId,
  type Trajectory,
  toErrorBody,
  toSegmentView,
  toTrajectoryView,
} from '@millrace/protocol';
import { type GroupRecord, isLostTrajectory, type Store } from '@millrace/store';
import { toGroupView } from './group-view.ts';

const pieceCharacters = 1 << 16;

/** A group with its trajectories; the same as the JSON of a `GroupView`. */
export async function* toGroupJson(group: GroupRecord, store: Pick<Store, 'trajectory'>): AsyncGenerator<string> {
  yield `${JSON.stringify(toGroupView(group)).slice(0, -1)},"trajectories":[`;
  for (const [index, { id }] of group.rollouts.entries()) {
    if (index > 0) yield ',';
    const read = await orLost(store.trajectory(id), id);
    if (read === undefined) missing(id);
    if ('error' in read) yield JSON.stringify(read);
    else yield* toTrajectoryJson(read);
  }
  yield ']}';
}

/** The same as the JSON of a `TrajectoryView`. */
export async function* toTrajectoryJson(trajectory: Trajectory): AsyncGenerator<string> {
  const { segments: _, sha256: __, ...head } = toTrajectoryView({ ...trajectory, segments: [] });
  const checksum = openChecksum(trajectory);
  let piece = `${JSON.stringify(head).slice(0, -1)},"segments":[`;
  for (const [index, segment] of trajectory.segments.entries()) {
    piece += `${index > 0 ? ',' : ''}${JSON.stringify(toSegmentView(segment))}`;
    addSegment(checksum, segment);
    if (piece.length < pieceCharacters) continue;
    yield piece;
    piece = '';
    await scheduler.yield();
  }
  yield `${piece}],"sha256":"${checksum.digest('hex')}"}`;
}

/** One that is lost or corrupt does not keep its siblings, and the groups after it, from being delivered. */
export async function orLost<T>(reading: Promise<T>, id: RolloutId): Promise<T | LostTrajectory> {
  try {
    return await reading;
  } catch (error) {
    if (!isLostTrajectory(error)) throw error;
    return { rollout_id: id, ...toErrorBody(error) };
  }
}

/** Every member of a delivered group has a trajectory, until its batch is deleted. */
export function missing(id: RolloutId): never {
  throw new RolloutError('internal', `the trajectory of rollout ${id} was deleted while it was sent`);
}
