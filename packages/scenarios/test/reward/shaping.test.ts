// The reward has named parts, and is always within its range.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shapeReward, shaping } from '../../src/reward/shaping.ts';

const right = { correctness: 1, hasFormat: true, sampledTokens: 1500 };

test('without configuration, the reward is the correctness', () => {
  const config = shaping.parse(undefined);
  assert.deepEqual(shapeReward(config, right, {}), { reward: 1, details: { correct: true, parts: { correctness: 1 } } });
  assert.equal(shapeReward(config, { ...right, correctness: 0.25 }, {}).reward, 0.25);
});

test('format and length are parts of their own', () => {
  const config = shaping.parse({ correctness: 0.9, format: 0.1, length: { weight: 0.5, free_tokens: 1000, limit_tokens: 2000 } });
  const { reward, details } = shapeReward(config, right, {});
  assert.deepEqual(details?.parts, { correctness: 0.9, format: 0.1, length: -0.25 });
  assert.equal(reward, 0.75);
  assert.equal(shapeReward(config, { correctness: 0, hasFormat: true, sampledTokens: 10 }, {}).reward, 0.1);
});

test('no weights leave the range', () => {
  const config = shaping.parse({ correctness: 5, length: { weight: 9, free_tokens: 0, limit_tokens: 1 }, range: [-1, 1] });
  for (const correctness of [0, 0.5, 1])
    for (const sampledTokens of [0, 1, 1e9]) {
      const { reward } = shapeReward(config, { correctness, hasFormat: false, sampledTokens }, {});
      assert.ok(reward >= -1 && reward <= 1);
    }
  assert.equal(shapeReward(config, { correctness: 0, hasFormat: false, sampledTokens: 0 }, {}).reward, -1);
});

test('a range with the highest first, or a penalty without room, is refused', () => {
  assert.equal(shaping.safeParse({ range: [1, 0] }).success, false);
  assert.equal(shaping.safeParse({ length: { weight: 1, free_tokens: 10, limit_tokens: 10 } }).success, false);
});
