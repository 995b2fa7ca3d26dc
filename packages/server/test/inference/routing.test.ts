// The choice of a backend, by table.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendId } from '@millrace/protocol';
import { chooseBackend } from '../../src/inference/routing.ts';

const load = (counts: Record<string, number>) => Object.entries(counts).map(([id, inFlight]) => ({ id: backendId.parse(id), inFlight }));

const table: readonly [string, Record<string, number>, string | undefined, string | undefined][] = [
  ['the least in flight is chosen', { a: 3, b: 1, c: 2 }, undefined, 'b'],
  ['ties go by id, in whatever order they come', { c: 1, a: 1, b: 1 }, undefined, 'a'],
  ['an excluded one is never chosen', { a: 0, b: 9 }, 'a', 'b'],
  ['nothing is chosen from nothing', {}, undefined, undefined],
  ['nothing is chosen when the only one is excluded', { a: 0 }, 'a', undefined],
];

for (const [title, counts, exclude, wanted] of table) {
  test(title, () => {
    assert.equal(chooseBackend(load(counts), exclude === undefined ? undefined : backendId.parse(exclude))?.id, wanted);
  });
}
