// The choice of a backend, by table and by properties that hold for any load.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BackendId, backendId } from '@millrace/protocol';
import { makeRandom } from '@millrace/testkit/plain';
import { type Candidate, type Choice, chooseBackend, defaultRouting, isFarBusier } from '../../src/backends/routing.ts';

type Row = number | readonly [inFlight: number, tokens?: number, siblings?: number];

const load = (rows: Record<string, Row>): Candidate[] =>
  Object.entries(rows).map(([id, row]) => {
    const [inFlight, tokens = 0, siblings = 0] = typeof row === 'number' ? [row] : row;
    return { id: backendId.parse(id), inFlight, tokens, siblings };
  });

const ids = (...names: string[]): BackendId[] => names.map((name) => backendId.parse(name));
const at = (name: string): Choice => ({ current: backendId.parse(name) });

const table: readonly [string, Record<string, Row>, Choice, string | undefined][] = [
  ['the least in flight is chosen', { a: 3, b: 1, c: 2 }, {}, 'b'],
  ['then the shorter contexts', { a: [1, 900], b: [1, 500], c: [2, 0] }, {}, 'b'],
  ['ties are broken by id, in any order of candidates', { c: 1, a: 1, b: 1 }, {}, 'a'],
  ['an excluded one is never chosen', { a: 0, b: 9 }, { exclude: ids('a') }, 'b'],
  ['nothing is chosen from an empty list', {}, {}, undefined],
  ['nothing is chosen when the only one is excluded', { a: 0 }, { exclude: ids('a') }, undefined],
  ['a group stays together', { a: 0, b: [2, 0, 2], c: 1 }, {}, 'b'],
  ['the larger part of a group is preferred', { a: [3, 0, 1], b: [3, 0, 4], c: 3 }, {}, 'b'],
  ['a group does not overload its backend', { a: 4, b: [9, 0, 8], c: 4 }, {}, 'a'],
  ['if one backend of a group is full, the other takes over', { a: 4, b: [9, 0, 7], c: [5, 0, 1] }, {}, 'c'],
  ['a rollout stays where it is', { a: 0, b: 15 }, at('b'), 'b'],
  ['a rollout leaves one that is far busier', { a: 0, b: 16 }, at('b'), 'a'],
  ['many more rollouts are not far busier if the ratio is small', { a: 100, b: 140 }, at('b'), 'b'],
  ['a rollout that leaves prefers its siblings within the bound', { a: 0, b: 60, c: [1, 0, 3] }, at('b'), 'c'],
  ['siblings do not keep a rollout on a far busier backend', { a: 0, b: [60, 0, 9] }, at('b'), 'a'],
  ['a rollout that cannot stay goes', { a: 5, b: 1 }, at('gone'), 'b'],
  ['an excluded place is not kept', { a: 5, b: 1 }, { ...at('b'), exclude: ids('b') }, 'a'],
];

for (const [title, rows, choice, wanted] of table) {
  test(title, () => assert.equal(chooseBackend(load(rows), choice)?.id, wanted));
}

test('placing many groups in any order keeps every backend within the bound of the average', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = makeRandom(seed);
    const held = load(Object.fromEntries(Array.from({ length: 2 + Math.floor(random() * 8) }, (_, n) => [`b${n}`, 0])));
    const counts = new Map(held.map(({ id }) => [id, 0]));
    const groups = new Map<string, Map<BackendId, number>>();
    for (let step = 1; step <= 400; step++) {
      const group = `g${Math.floor(random() * 20)}`;
      const siblings = groups.get(group) ?? new Map<BackendId, number>();
      groups.set(group, siblings);
      const candidates = held.map((one) => ({ ...one, inFlight: counts.get(one.id) ?? 0, siblings: siblings.get(one.id) ?? 0 }));
      const { id } = chooseBackend(candidates) ?? assert.fail('none chosen');
      counts.set(id, (counts.get(id) ?? 0) + 1);
      siblings.set(id, (siblings.get(id) ?? 0) + 1);
      const bound = (defaultRouting.affinityBound * step) / held.length + 2;
      assert.ok(Math.max(...counts.values()) <= bound, `seed ${seed}, step ${step}: ${[...counts.values()]} over ${bound}`);
    }
  }
});

test('spilling ends, and no move triggers one back', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = makeRandom(seed);
    const counts = Array.from({ length: 5 }, () => Math.floor(random() * 200));
    const total = counts.reduce((sum, n) => sum + n, 0);
    let moves = 0;
    for (let moved = true; moved; ) {
      moved = false;
      for (const from of counts.keys()) {
        const candidates = load(Object.fromEntries(counts.map((n, i) => [`b${i}`, n - (i === from ? 1 : 0)])));
        const chosen = (counts[from] ?? 0) > 0 ? chooseBackend(candidates, at(`b${from}`)) : undefined;
        const to = chosen ? Number(chosen.id.slice(1)) : from;
        if (to === from) continue;
        counts[from] = (counts[from] ?? 0) - 1;
        counts[to] = (counts[to] ?? 0) + 1;
        moves += 1;
        moved = true;
        const back = isFarBusier({ inFlight: (counts[to] ?? 0) - 1 }, { inFlight: counts[from] ?? 0 }, defaultRouting);
        assert.equal(back, false);
      }
    }
    assert.ok(moves <= total, `${moves} moves of ${total} rollouts`);
  }
});
