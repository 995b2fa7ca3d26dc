// The estimate behind Retry-After.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@millrace/protocol';
import { systemClock } from '../../../src/base/clock.ts';
import { EndRate } from '../../../src/http/context/end-rate.ts';

const end: Event = { id: 1, at: '2026-01-01T00:00:00.000Z', kind: 'rollout-end', data: {} };

test('the wait follows the ends of the last minute, and stays between a second and a minute', () => {
  let ms = 5000;
  const rate = new EndRate({ ...systemClock, monotonic: () => ms });
  assert.equal(rate.secondsFor(1), 60);
  for (let second = 0; second < 10; second += 1) {
    rate.push(Array.from({ length: 4 }, () => end));
    ms += 1000;
  }
  ms -= 1000;
  assert.deepEqual(
    [1, 4, 5, 40, 1000].map((count) => rate.secondsFor(count)),
    [1, 1, 2, 10, 60],
  );
  ms += 30_000;
  assert.equal(rate.secondsFor(40), 40);
  ms += 60_000;
  assert.equal(rate.secondsFor(1), 60);
});
