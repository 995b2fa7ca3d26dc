// Replaces old trajectories by a form without text and messages, one at a time.

import { dropText, type Trajectory } from '@millrace/protocol';
import type { PackedTrajectory } from '../claim.ts';
import type { TextTrajectory } from './operations/blobs.ts';
import type { StoredEnding } from './operations/transitions.ts';
import { isLostTrajectory, packTrajectory } from './stored-trajectory.ts';

export type KeptTrajectory = Pick<StoredEnding, 'trajectory' | 'blob'>;

interface TextCalls {
  /** Some with text, after this row and old enough. */
  find(after: number): Promise<readonly TextTrajectory[]>;
  read(id: TextTrajectory['id']): Promise<Trajectory | undefined>;
  keep(of: TextTrajectory, packed: PackedTrajectory): Promise<KeptTrajectory>;
  /** False if the row was deleted or replaced meanwhile. */
  replace(seq: number, kept: KeptTrajectory): Promise<boolean>;
  discard(kept: KeptTrajectory): Promise<void>;
}

export async function dropTexts(calls: TextCalls): Promise<void> {
  for (let found = await calls.find(0); found.length > 0; found = await calls.find(found.at(-1)?.seq ?? 0)) {
    for (const one of found) {
      const trajectory = await calls.read(one.id).catch(skipLost);
      if (!trajectory) continue;
      const kept = await calls.keep(one, await packTrajectory(dropText(trajectory)));
      if (!(await calls.replace(one.seq, kept))) await calls.discard(kept);
    }
  }
}

/** One that is lost does not keep the others from being replaced. */
function skipLost(error: unknown): undefined {
  if (!isLostTrajectory(error)) throw error;
}
