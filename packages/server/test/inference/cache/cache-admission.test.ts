// The account of one cache: what is let go at once, what waits, what is given back, and how calls correct it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CacheAdmission } from '../../../src/inference/cache/cache-admission.ts';

/** Time stands still unless a test says otherwise. */
function openCache(capacityTokens?: number) {
  const cache = new CacheAdmission(capacityTokens);
  return {
    cache,
    ask: (id: string, tokens: number, nowMs = 0) => cache.ask({ id, rank: Number(id.slice(1)), tokens }, nowMs),
    end: (id: string, tokens: number, call: { cachedTokens?: number; firstTokenMs?: number; nowMs?: number } = {}) =>
      cache.endCall({ id, tokens, cachedTokens: call.cachedTokens, firstTokenMs: call.firstTokenMs }, call.nowMs ?? 0),
  };
}

test('an engine that reports no capacity holds no one', () => {
  const { cache, ask } = openCache();
  for (let index = 0; index < 1000; index += 1) assert.ok(ask(`r${index}`, 100_000));
  assert.equal(cache.view.held, 0);
});

test('what fits goes, what does not waits until one ends', () => {
  const { cache, ask } = openCache(100_000);
  assert.ok(ask('r1', 50_000));
  assert.ok(ask('r2', 40_000));
  assert.equal(ask('r3', 20_000), false);
  assert.deepEqual(cache.next(0), []);
  assert.deepEqual(cache.view, { members: 2, memberTokens: 90_000, held: 1, usableTokens: 100_000 });
  cache.leave('r1');
  assert.deepEqual(cache.next(0), ['r3']);
  assert.equal(cache.view.held, 0);
});

test('a member returns from its tool ahead of rollouts that wait', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r5', 50_000);
  ask('r6', 40_000);
  assert.equal(ask('r1', 20_000), false);
  end('r5', 51_000);
  assert.ok(ask('r5', 52_000));
  assert.deepEqual(cache.next(0), []);
});

test('a new rollout does not overtake those that wait, even if it fits', () => {
  const { cache, ask } = openCache(100_000);
  ask('r1', 50_000);
  assert.equal(ask('r2', 60_000), false);
  assert.equal(ask('r3', 10_000), false);
  cache.leave('r2');
  assert.deepEqual(cache.next(0), ['r3']);
});

test('a rollout that leaves in any phase leaves nothing behind', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r1', 40_000);
  ask('r2', 40_000);
  ask('r3', 40_000);
  end('r2', 41_000);
  for (const id of ['r1', 'r2', 'r3', 'r3', 'unknown']) cache.leave(id);
  assert.deepEqual(cache.view, { members: 0, memberTokens: 0, held: 0, usableTokens: 100_000 });
  assert.ok(ask('r4', 100_000));
});

test('a call that is asked for twice and ended twice counts once', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r1', 60_000);
  ask('r1', 60_000);
  assert.equal(ask('r2', 60_000), false);
  assert.equal(ask('r2', 60_000), false);
  assert.equal(cache.view.held, 1);
  end('r1', 60_000);
  end('r1', 60_000);
  assert.equal(cache.view.memberTokens, 60_000);
});

test('tools that never return do not keep their room', () => {
  const { cache, ask, end } = openCache(100_000);
  for (const id of ['r1', 'r2']) ask(id, 45_000);
  // 10 tokens in a millisecond: the whole cache in 10 s.
  for (const id of ['r1', 'r2']) end(id, 45_100, { cachedTokens: 0, firstTokenMs: 4500 });
  assert.ok(ask('r3', 9000));
  assert.equal(ask('r4', 9000), false);
  assert.deepEqual(cache.next(9000), []);
  assert.deepEqual(cache.next(10_001), ['r4']);
});

test('members that do not find their context show that the cache is smaller than reported', () => {
  const { cache, ask, end } = openCache(100_000);
  const turn = (cachedTokens: number) => {
    ask('r1', 50_000);
    end('r1', 50_000, { cachedTokens });
  };
  turn(0);
  assert.equal(cache.view.usableTokens, 100_000);
  for (let index = 0; index < 100; index += 1) turn(10_000);
  assert.equal(cache.view.usableTokens, 12_500);
  for (let index = 0; index < 1000; index += 1) turn(49_990);
  assert.equal(cache.view.usableTokens, 100_000);
});

test('an engine that restarts with an empty cache is not taken for a smaller one', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r1', 50_000);
  end('r1', 50_000, { cachedTokens: 0 });
  cache.flush();
  ask('r1', 50_000);
  end('r1', 50_000, { cachedTokens: 0 });
  assert.equal(cache.view.usableTokens, 100_000);
});

test('an engine that does not say what it had is believed to have what it reports', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r1', 50_000);
  end('r1', 50_000, { firstTokenMs: 5000 });
  ask('r1', 51_000);
  end('r1', 51_000, { firstTokenMs: 1 });
  assert.equal(cache.view.usableTokens, 100_000);
  // Only the first call shows the speed: 10 tokens in a millisecond.
  assert.ok(ask('r2', 20_000));
  assert.equal(ask('r3', 60_000, 9999), false);
  assert.deepEqual(cache.next(10_001), ['r3']);
});

test('a capacity that becomes known, or changes, holds from then on', () => {
  const { cache, ask } = openCache();
  for (const id of ['r1', 'r2', 'r3']) ask(id, 40_000);
  cache.resize(100_000);
  assert.equal(ask('r4', 10_000), false);
  cache.resize(200_000);
  assert.deepEqual(cache.next(0), ['r4']);
});
