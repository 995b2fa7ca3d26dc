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
    askAs: (group: string, id: string, tokens: number) => cache.ask({ id, rank: Number(id.slice(1)), tokens, group }, 0),
    /** Nothing came back. */
    fail: (id: string) => cache.endCall({ id }, 0),
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
  assert.deepEqual(cache.view, { members: 2, memberTokens: 90_000, held: 1, usableTokens: 100_000, contextTokens: 110_000 });
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
  assert.deepEqual(cache.view, { members: 0, memberTokens: 0, held: 0, usableTokens: 100_000, contextTokens: 0 });
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
  for (let index = 0; index < 100; index += 1) turn(30_000);
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

test('a call that failed says nothing about what is cached, and is not a tool', () => {
  const { cache, ask, end, fail } = openCache(100_000);
  ask('r1', 50_000);
  fail('r1');
  // The server may not have computed anything of it.
  ask('r1', 50_000);
  end('r1', 50_000, { cachedTokens: 0 });
  assert.equal(cache.view.usableTokens, 100_000);
  ask('r1', 50_000);
  fail('r1');
  ask('r1', 50_000);
  end('r1', 50_000, { cachedTokens: 0 });
  assert.ok(cache.view.usableTokens < 100_000, 'an answered call before it still counts');
});

test('tokens count while they are sampled, and a context that has outgrown the cache is not joined by another', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r1', 10_000);
  ask('r2', 10_000);
  cache.grow('r1', 75_000);
  assert.equal(cache.view.memberTokens, 95_000);
  assert.equal(ask('r3', 10_000), false);
  end('r1', 85_000);
  cache.grow('r1', 90_000);
  assert.equal(cache.view.memberTokens, 95_000, 'a report that is late changes nothing');
});

test('the next turn is expected to sample as much as the last one', () => {
  const { ask, end } = openCache(100_000);
  ask('r1', 10_000);
  end('r1', 40_000);
  assert.ok(ask('r1', 41_000));
  assert.equal(ask('r2', 30_000), false);
});

test('an engine that keeps no prefixes, or whose cache others fill, is soon used as without admission, and tried again later', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r1', 50_000);
  ask('r2', 40_000);
  assert.equal(ask('r3', 50_000), false);
  for (let index = 0; index < 100; index += 1) {
    end('r1', 50_000, { cachedTokens: 0 });
    ask('r1', 50_000);
    cache.next(0);
  }
  assert.equal(cache.view.held, 0);
  for (let index = 4; index < 100; index += 1) assert.ok(ask(`r${index}`, 50_000, 599_999));
  assert.equal(ask('r100', 50_000, 600_001), false);
});

test('of a cache that is shared, a worker has what the oldest of all workers take of its own', () => {
  const { cache, ask } = openCache(100_000);
  for (const id of ['r1', 'r2', 'r3']) ask(id, 30_000);
  cache.divide(new Set(['r1', 'r7']));
  assert.equal(cache.view.usableTokens, 30_000);
  assert.equal(ask('r4', 10_000), false);
  assert.deepEqual(cache.next(0), []);
  assert.equal(cache.view.memberTokens, 30_000, 'the younger ones are no longer members');
  cache.grow('r1', 20_000);
  assert.equal(cache.view.usableTokens, 50_000, 'its part grows with them');
  cache.divide(undefined);
  assert.equal(cache.view.usableTokens, 100_000);
});

test('two leases of one rollout are two rows, and both are its', () => {
  const { cache } = openCache(100_000);
  for (const id of ['a', 'b']) cache.ask({ id, rollout: 'r1', rank: 1, tokens: 10_000 }, 0);
  cache.divide(new Set(['r1']));
  cache.leave('a');
  assert.deepEqual([cache.view.memberTokens, cache.view.usableTokens], [10_000, 20_000]);
});

test('a worker with none of the oldest waits, and takes no guest', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r1', 10_000);
  end('r1', 10_000);
  cache.divide(new Set());
  assert.equal(ask('r1', 11_000), false);
  assert.equal(ask('r2', 1000), false);
  assert.deepEqual(cache.next(0), []);
  cache.divide(new Set(['r1']));
  assert.deepEqual(cache.next(0), ['r1']);
  assert.deepEqual(cache.next(600_001), ['r2'], 'after the longest wait it goes');
});

test('the room of one of the oldest that ends goes to the next of its worker, until it is divided again', () => {
  const { cache, ask } = openCache(100_000);
  ask('r1', 40_000);
  cache.divide(new Set(['r1']));
  assert.equal(ask('r2', 40_000), false);
  cache.leave('r1');
  assert.deepEqual(cache.next(0), ['r2']);
  cache.divide(new Set());
  assert.equal(cache.view.usableTokens, 0);
});

test('a sibling that replaces a failed one is as old as its group', () => {
  const { cache, ask, askAs } = openCache(100_000);
  askAs('g1', 'r1', 60_000);
  ask('r2', 30_000);
  assert.equal(ask('r3', 20_000), false);
  assert.equal(askAs('g1', 'r9', 20_000), false);
  cache.leave('r2');
  assert.deepEqual(cache.next(0), ['r9', 'r3']);
});

test('a group that has left is forgotten', () => {
  const { cache, ask, askAs } = openCache(100_000);
  for (const id of ['r1', 'r2']) askAs('g1', id, 10_000);
  for (const id of ['r1', 'r2']) cache.leave(id);
  ask('r0', 90_000);
  assert.equal(ask('r3', 20_000), false);
  assert.equal(askAs('g1', 'r9', 20_000), false);
  cache.leave('r0');
  assert.deepEqual(cache.next(0), ['r3', 'r9']);
});

test('a history that was rewritten below its opening shares nothing', () => {
  const { cache } = openCache(100_000);
  const shared = { key: 'g1', tokens: 30_000 };
  for (const id of ['r1', 'r2']) cache.ask({ id, rank: 1, tokens: 40_000, shared }, 0);
  cache.endCall({ id: 'r2', tokens: 41_000 }, 0);
  cache.ask({ id: 'r2', rank: 1, tokens: 5000, shared }, 0);
  assert.ok(cache.ask({ id: 'r3', rank: 2, tokens: 50_000 }, 0));
  for (const id of ['r1', 'r2', 'r3']) cache.leave(id);
  assert.ok(cache.ask({ id: 'r4', rank: 2, tokens: 50_000 }, 0));
  assert.equal(cache.ask({ id: 'r5', rank: 2, tokens: 50_001 }, 0), false, 'nothing is left over in the sums');
});

test('one huge context waits for its turn, has the cache, and gives it back', () => {
  const { cache, ask, end } = openCache(100_000);
  for (const id of ['r2', 'r3']) ask(id, 45_000);
  assert.equal(ask('r1', 99_000), false);
  assert.equal(ask('r4', 1000), false, 'none overtakes it');
  for (const id of ['r2', 'r3']) end(id, 45_100);
  cache.leave('r2');
  cache.leave('r3');
  assert.deepEqual(cache.next(0), ['r1', 'r4']);
  end('r1', 99_100);
  cache.leave('r1');
  assert.equal(cache.view.memberTokens, 1000);
});

test('of a thousand tiny contexts as many go as fit, in their order, and all go in the end', () => {
  const { cache, ask } = openCache(100_000);
  for (let index = 1000; index < 2000; index += 1) ask(`r${index}`, 500);
  assert.equal(cache.view.held, 800);
  const gone: string[] = [];
  for (let index = 1000; index < 2000; index += 1) {
    cache.leave(`r${index}`);
    gone.push(...cache.next(0));
  }
  assert.deepEqual(
    gone,
    Array.from({ length: 800 }, (_, index) => `r${1200 + index}`),
  );
});

test('tools that never return do not keep their room for ever, even where the speed of the engine is not known', () => {
  const { cache, ask, end } = openCache(100_000);
  ask('r1', 900);
  end('r1', 95_000);
  assert.ok(ask('r2', 1000));
  assert.equal(ask('r3', 10_000), false);
  assert.deepEqual(cache.next(600_001), ['r3']);
});
