// Dividing the places of a claim among classes of work.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DueClass, divideTurns } from '../../../src/postgres/calls/divide-turns.ts';

const makeClass = (seq: number, changes: Partial<DueClass> = {}): DueClass => ({
  ...{ seq, rank: 0, weight: 1, active: 0, due: 10, served: 0 },
  ...changes,
});

test('the classes of one rank take turns, by weight and by what they have', () => {
  assert.deepEqual(divideTurns([makeClass(1), makeClass(2)], 4), [1, 2, 1, 2]);
  assert.deepEqual(divideTurns([makeClass(1, { weight: 2 }), makeClass(2)], 6), [1, 2, 1, 2, 1, 1]);
  assert.deepEqual(divideTurns([makeClass(1, { active: 3 }), makeClass(2)], 4), [2, 2, 2, 1]);
});

test('of equal classes the one that waited longest goes first', () => {
  assert.deepEqual(divideTurns([makeClass(1, { served: 9 }), makeClass(2, { served: 4 })], 3), [2, 1, 2]);
});

test('a higher rank goes first until it has nothing due, and no class gets more than it has', () => {
  const classes = [makeClass(1), makeClass(2, { rank: 1, due: 2, active: 50 })];
  assert.deepEqual(divideTurns(classes, 3), [2, 2, 1]);
  assert.deepEqual(divideTurns([makeClass(1, { due: 1 })], 5), [1]);
  assert.deepEqual(divideTurns([], 5), []);
});
