// The prompts that a backend got, against the trajectory that came of them.

import assert from 'node:assert/strict';
import type { Trajectory } from '@millrace/protocol';
import type { FakeBackend } from '@millrace/testkit';

/** The prompts that the backend got for a rollout and that its trajectory does not have, id by id. */
export function findForeignPrompts({ rolloutId, segments }: Trajectory, { requests }: FakeBackend): string[] {
  const branches: number[][] = [];
  const contexts = segments.map(({ tokenIds, branch = 0 }) => {
    const ids = [...(branches[branch] ?? []), ...tokenIds];
    branches[branch] = ids;
    return ids.join();
  });
  const own = requests.filter(({ id = '' }) => id.startsWith(rolloutId));
  assert.ok(own.length >= 3, `${own.length} requests of ${rolloutId}`);
  return own.flatMap(({ promptIds }) => (contexts.includes(promptIds.join()) ? [] : [`a prompt of ${promptIds.length} tokens`]));
}
