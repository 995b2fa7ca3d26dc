// The page of all benchmarks keeps the sections of those that did not run.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replaceSections } from './page.ts';
import { renderReport } from './report.ts';

const make = (name: string, title: string) => renderReport({ title, rows: [] }, `On a machine: \`npm run bench -- ${name}\``);

test('a benchmark that ran replaces its own section, and the others stay in their order', () => {
  const order = ['one', 'two', 'three'];
  const before = replaceSections('', new Map(order.map((name) => [name, make(name, `Old ${name}`)])), order);
  const after = replaceSections(before, new Map([['two', make('two', 'New two')]]), order);
  assert.deepEqual(
    [...after.matchAll(/^## (.*)$/gm)].map(([, title]) => title),
    ['Old one', 'New two', 'Old three'],
  );
  assert.equal(replaceSections(after, new Map(), order), after);
});
