// Recent ends: the estimate for Retry-After, and the rewards of the last minute.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import type { Event } from '@millrace/protocol';
import { RecentEnds } from '../../../src/http/context/recent-ends.ts';

const end: Event = { id: 1, at: '2026-01-01T00:00:00.000Z', kind: 'rollout-end', data: {} };

test('the estimate follows the ends of the last minute, and stays between one second and one minute', () => {
  let ms = 5000;
  const rate = new RecentEnds({ ...systemClock, monotonic: () => ms });
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

test('failures and the mean reward cover the last minute, and an end without a reward is not a zero', () => {
  let ms = 0;
  const ends = new RecentEnds({ ...systemClock, monotonic: () => ms });
  assert.deepEqual(ends.read(), { seconds: 60, ended: 0, failed: 0, rewarded: 0, mean_reward: null });
  const done = (reward: number | null): Event => ({ ...end, data: { state: 'done', reward } });
  const failed: Event = { ...end, data: { state: 'failed', reward: null } };
  ends.push([done(1), failed]);
  ms += 30_000;
  ends.push([done(0.5), done(0), { ...end, kind: 'turn-end' }]);
  assert.deepEqual(ends.read(), { seconds: 60, ended: 4, failed: 1, rewarded: 3, mean_reward: 0.5 });
  ms += 30_000;
  assert.deepEqual(ends.read(), { seconds: 60, ended: 2, failed: 0, rewarded: 2, mean_reward: 0.25 });
  ms += 60_000;
  assert.equal(ends.read().ended, 0);
});
