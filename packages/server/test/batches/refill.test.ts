// How many groups to start: never more than there is room or need for, and at least one when none is open.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRandom } from '@millrace/testkit/plain';
import { chanceOf, countToBegin, countWanted, estimateShare, type RefillView } from '../../src/batches/refill.ts';

const view: RefillView = {
  target: 10,
  delivered: 0,
  rejected: 0,
  groupSize: 8,
  open: [],
  load: { queued: 0, active: 0, slots: 1000 },
};
const fresh = (count: number) => Array.from({ length: count }, () => ({ rewards: 0, assured: false }));
const assured = (count: number) => Array.from({ length: count }, () => ({ rewards: 4, assured: true }));

test('the share follows the observed groups of this batch and the previous one in the series', () => {
  assert.ok(Math.abs(estimateShare({ ...view, delivered: 50, rejected: 50 }) - 0.5) < 0.02);
  assert.ok(Math.abs(estimateShare({ ...view, before: { informative: 30, judged: 100 } }) - 0.36) < 0.03);
  assert.ok(estimateShare({ ...view, rejected: 1000 }) >= 1 / 64);
});

test('equal rewards lower the chance of a group, different ones make it certain', () => {
  const chances = [0, 1, 2, 4, 7].map((rewards) => chanceOf({ rewards, assured: false }, 0.5, 8));
  assert.deepEqual(
    chances,
    chances.toSorted((a, b) => b - a),
  );
  assert.equal(chances[0], 0.5);
  assert.equal(chanceOf({ rewards: 2, assured: true }, 0.5, 8), 1);
  assert.equal(chanceOf({ rewards: 8, assured: false }, 0.5, 8), 0);
});

test('open groups count by their chance: enough assured groups need no more', () => {
  assert.equal(countWanted({ ...view, delivered: 4, rejected: 4, open: assured(6) }), 0);
  assert.ok(countWanted({ ...view, delivered: 4, rejected: 4, open: assured(3) }) >= 4);
  assert.equal(countWanted({ ...view, delivered: 10, open: [] }), 0);
  assert.equal(countWanted({ ...view, delivered: 4, rejected: 4, open: fresh(30) }), 0);
});

test('no more groups start than the slots can run, plus a short queue', () => {
  assert.equal(countToBegin({ ...view, target: 100, open: fresh(8), load: { queued: 0, active: 64, slots: 64 } }), 0);
  assert.equal(countToBegin({ ...view, target: 100, open: fresh(7), load: { queued: 0, active: 57, slots: 64 } }), 1);
  assert.equal(countToBegin({ ...view, target: 100, load: { queued: 0, active: 0, slots: 64 } }), 8);
});

test('a batch without open groups starts one behind other queued work, even without workers', () => {
  assert.equal(countToBegin({ ...view, load: { queued: 20_000, active: 64, slots: 64 } }), 1);
  assert.equal(countToBegin({ ...view, load: { queued: 0, active: 0, slots: 0 } }), 1);
});

test('in random states the count is never negative, and never zero while groups are missing and none is open', () => {
  const random = makeRandom(3);
  for (let round = 0; round < 2000; round += 1) {
    const pick = (most: number) => Math.floor(random() * most);
    const target = 1 + pick(50);
    const open = random() < 0.3 ? [] : Array.from({ length: pick(40) }, () => ({ rewards: pick(9), assured: random() < 0.3 }));
    const some = {
      ...view,
      target,
      delivered: pick(target + 1),
      rejected: pick(50),
      open,
      load: { queued: pick(50), active: pick(100), slots: pick(100) },
    };
    const count = countToBegin(some);
    assert.ok(Number.isInteger(count) && count >= 0);
    if (open.length === 0 && some.delivered < target) assert.ok(count > 0);
    if (some.delivered >= target) assert.equal(count, 0);
  }
});
