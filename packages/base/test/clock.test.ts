// Pauses between repeated calls.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pauseAfter } from '../src/clock.ts';

test('a repeated call takes at most its share of the time, within bounds', () => {
  const rules = { leastMs: 100, mostMs: 2000 };
  assert.deepEqual(
    [0, 5, 10, 50, 500].map((tookMs) => pauseAfter(tookMs, rules)),
    [100, 100, 100, 500, 2000],
  );
  assert.equal(pauseAfter(2, { leastMs: 100, mostMs: 60_000, share: 0.001 }), 2000);
});
