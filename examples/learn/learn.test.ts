// The demo that learns, as CI runs it: one seed, through the real service with real sandboxes. The reward rises from near chance
// to above 0.9, and every sampled token of every trajectory is on-policy.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { animals } from './model/vocabulary.ts';
import { learn } from './run.ts';
import { tolerance } from './training/on-policy.ts';
import { renderPicture } from './training/picture.ts';

test('a policy learns in real sandboxes, and every token it is trained on is its own', async () => {
  const { steps, onPolicy, left } = await learn({ seed: 1, goal: 0.91, mostSteps: 16 });
  const [first, last] = [steps[0], steps.at(-1)];
  assert.ok(first && last);
  const seen = steps.map(({ reward }) => reward.toFixed(2)).join(' ');
  assert.ok(first.reward < 0.4 && first.solved < 0.3, `it begins near chance: ${seen}`);
  assert.ok(last.reward > 0.9, `it has learned: ${seen}`);
  const rollouts = steps.reduce((sum, step) => sum + step.rollouts, 0);
  assert.ok(rollouts <= 1300, `it takes few rollouts: ${rollouts}`);
  const sampled = steps.reduce((sum, step) => sum + step.tokens, 0);
  assert.equal(onPolicy.tokens, sampled, 'every sampled token of every trajectory was computed again');
  assert.ok(onPolicy.largest <= tolerance, `largest difference ${onPolicy.largest}`);
  assert.equal(left, 0, 'no process is left in a sandbox');
  assert.match(renderPicture(steps, { chance: 1 / animals.length, title: 'test' }), /<polyline class="line reward"/);
});
