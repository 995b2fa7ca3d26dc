// The rule as a table: who stays, who leaves and who goes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CacheLoad, type CacheRow, decideTurns, longestHoldMs } from '../../../src/inference/cache/cache-rule.ts';

const nowMs = 1_000_000;
const limits = { usableTokens: 100, horizonMs: 10_000, guestTokens: 60, nowMs };

/** A member in a short tool; its rank is the number in its id. */
function makeRow(id: string, row: Partial<CacheRow> = {}): CacheRow {
  return { id, rank: Number(id.slice(1)), tokens: 40, growth: 0, phase: 'tool', sinceMs: nowMs - 1000, isMember: true, ...row };
}

const held = { phase: 'held', isMember: false } as const;

test('a member goes at once', () => {
  const rows = [makeRow('r1', { phase: 'held' }), makeRow('r2', { phase: 'sampling' })];
  assert.deepEqual(decideTurns(rows, limits), { out: [], go: [{ id: 'r1', isMember: true }] });
});

test('a rollout becomes a member if it fits with the next turn of each, and waits otherwise', () => {
  const rows = (tokens: number) => [makeRow('r1', { phase: 'sampling', growth: 10 }), makeRow('r2', { ...held, tokens })];
  assert.deepEqual(decideTurns(rows(50), limits).go, [{ id: 'r2', isMember: true }]);
  assert.deepEqual(decideTurns(rows(51), limits).go, []);
});

test('the oldest that waits goes first, and is not overtaken by a smaller one', () => {
  const sampling = makeRow('r1', { phase: 'sampling' });
  const young = makeRow('r9', { ...held, tokens: 10 });
  assert.deepEqual(
    decideTurns([sampling, young, makeRow('r2', { ...held, tokens: 50 })], limits).go.map(({ id }) => id),
    ['r2', 'r9'],
  );
  assert.deepEqual(decideTurns([sampling, young, makeRow('r2', { ...held, tokens: 61 })], limits).go, []);
});

test('when members have grown too large, the youngest leaves, also while it samples', () => {
  const rows = [makeRow('r3', { phase: 'sampling' }), makeRow('r1'), makeRow('r2')];
  assert.deepEqual(decideTurns(rows, limits).out, ['r3']);
});

test('the youngest leaves and waits itself if it is the one that asks', () => {
  const rows = [makeRow('r1', { phase: 'sampling' }), makeRow('r2'), makeRow('r3', { phase: 'held' })];
  assert.deepEqual(decideTurns(rows, limits), { out: ['r3'], go: [] });
});

test('what a leaving member holds while it samples is not given away', () => {
  const rows = [makeRow('r1'), makeRow('r2'), makeRow('r4', { phase: 'sampling' }), makeRow('r3', { ...held, tokens: 15 })];
  assert.deepEqual(decideTurns(rows, limits), { out: ['r4'], go: [] });
});

test('a member in a tool for longer than the horizon makes room', () => {
  const asleep = makeRow('r1', { tokens: 90, sinceMs: nowMs - 10_001 });
  const rows = [asleep, makeRow('r2', { phase: 'sampling' }), makeRow('r3', held)];
  assert.deepEqual(decideTurns(rows, limits), { out: ['r1'], go: [{ id: 'r3', isMember: true }] });
});

test('an engine that does nothing takes a guest, and only one', () => {
  const rows = [makeRow('r1', { tokens: 90 }), makeRow('r2', held), makeRow('r3', held)];
  assert.deepEqual(decideTurns(rows, limits).go, [{ id: 'r2', isMember: false }]);
});

test('an engine that does nothing takes no guest that keeps it busy for longer than a tool takes', () => {
  const rows = [makeRow('r1', { tokens: 90 }), makeRow('r2', { ...held, tokens: 61 }), makeRow('r3', held)];
  assert.deepEqual(decideTurns(rows, limits).go, []);
});

test('a context that is too large for the cache has it to itself', () => {
  const huge = makeRow('r1', { ...held, tokens: 500 });
  assert.deepEqual(decideTurns([huge], limits).go, [{ id: 'r1', isMember: true }]);
  assert.deepEqual(decideTurns([{ ...huge, isMember: true }, makeRow('r2', held)], limits), {
    out: [],
    go: [{ id: 'r1', isMember: true }],
  });
});

test('after the longest wait a rollout goes even if nothing fits, one at a time', () => {
  const late = { ...held, sinceMs: nowMs - longestHoldMs - 1 };
  const rows = [makeRow('r1', { tokens: 90, phase: 'sampling' }), makeRow('r2', late), makeRow('r3', late)];
  assert.deepEqual(decideTurns(rows, limits).go, [{ id: 'r2', isMember: false }]);
  assert.deepEqual(decideTurns([...rows, makeRow('r4', { phase: 'sampling', isMember: false })], limits).go, []);
  const older = makeRow('r0', held);
  assert.deepEqual(
    decideTurns([...rows, older], limits).go,
    [{ id: 'r2', isMember: false }],
    'it is not held up by an older one that just came',
  );
});

test('one group goes before the next of the same age', () => {
  const rows = ['r1', 'r2', 'r3', 'r4'].map((id, index) =>
    makeRow(id, { ...held, rank: 1, tokens: 25, group: index % 2 === 0 ? 'g1' : 'g0' }),
  );
  assert.deepEqual(
    decideTurns(rows, limits).go.map(({ id }) => id),
    ['r2', 'r4', 'r1', 'r3'],
  );
});

test('the opening that siblings share counts once', () => {
  const shared = { key: 'g1', tokens: 30 };
  const load = new CacheLoad();
  const rows = ['r1', 'r2', 'r3'].map((id) => makeRow(id, { shared }));
  for (const row of rows) load.add(row);
  assert.equal(load.tokens, 30 + 3 * 10);
  for (const row of rows) load.remove(row);
  assert.equal(load.tokens, 0);
  assert.deepEqual(decideTurns([...rows, makeRow('r4', { ...held, shared })], limits).go, [{ id: 'r4', isMember: true }]);
  assert.deepEqual(decideTurns([...rows, makeRow('r4', { ...held, tokens: 41 })], limits).go, [{ id: 'r4', isMember: false }]);
});
