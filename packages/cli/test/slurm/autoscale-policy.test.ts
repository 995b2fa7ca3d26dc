// The policy that scales worker nodes by the waiting line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AutoscalePolicy } from '../../src/slurm/autoscale-policy.ts';

const rules = { least: 1, most: 10, perNode: 100, upAfterMs: 30, downAfterMs: 600 };

function play(looks: readonly (readonly [nowMs: number, nodes: number, work: number])[]): number[] {
  const policy = new AutoscalePolicy(rules);
  return looks.map(([nowMs, nodes, work]) => policy.choose({ nowMs, nodes, queued: work, held: 0 }));
}

test('a line that stays long brings as many nodes as it needs, and no more than the most', () => {
  assert.deepEqual(
    play([
      [0, 2, 450],
      [20, 2, 450],
      [30, 2, 450],
      [40, 5, 5000],
      [70, 5, 5000],
    ]),
    [2, 2, 5, 5, 10],
  );
});

test('a line that is long for a moment changes nothing', () => {
  assert.deepEqual(
    play([
      [0, 2, 450],
      [20, 2, 200],
      [30, 2, 450],
      [50, 2, 450],
    ]),
    [2, 2, 2, 2],
  );
});

test('nodes are released only after a long calm, down to its busiest moment and to the fewest', () => {
  assert.deepEqual(
    play([
      [0, 8, 0],
      [300, 8, 250],
      [590, 8, 0],
      [600, 8, 0],
      [700, 3, 0],
      [1300, 3, 0],
    ]),
    [8, 8, 8, 3, 3, 1],
  );
});
