// A comparison of two checkouts takes the figures from what their benchmarks print.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFigures, renderComparison } from './against.ts';
import { renderReport } from './report.ts';

const print = (rows: readonly [what: string, value: number][]) =>
  readFigures(
    renderReport({ title: 'x', rows: rows.map(([what, value]) => ({ what, unit: 'turns/s', samples: [value, value] })) }, 'On a machine'),
  );

test('a row is compared with the row of the same text, and a renamed one with the one in its place', () => {
  const there = print([
    ['turns', 1500],
    ['by it', 10],
  ]);
  const own = print([
    ['turns', 1200],
    ['next to it', 20],
  ]);
  const rows = renderComparison('capacity', [{ there, own }]).split('\n').slice(5, -1);
  assert.deepEqual(rows, ['| turns | 1,500 | 1,200 | turns/s | 0.8 | 0.8 |', '| next to it | 10 | 20 | turns/s | 2 | 2 |']);
});

test('a row that the other checkout does not have is left out', () => {
  const rows = renderComparison('capacity', [
    {
      there: print([['turns', 1500]]),
      own: print([
        ['memory', 1],
        ['turns', 1500],
      ]),
    },
  ]);
  assert.doesNotMatch(rows, /memory/);
  assert.match(rows, /turns \| 1,500 \| 1,500/);
});

test('rows of the same text in different units are different rows', () => {
  const figures = (cpu: number, wall: number) => [
    { what: 'a turn', unit: 'ms CPU', value: cpu },
    { what: 'a turn', unit: 'ms wall', value: wall },
  ];
  const rows = renderComparison('turn-cost', [{ there: figures(1, 10), own: figures(1, 20) }])
    .split('\n')
    .slice(5, -1);
  assert.deepEqual(rows, ['| a turn | 1 | 1 | ms CPU | 1 | 1 |', '| a turn | 10 | 20 | ms wall | 2 | 2 |']);
});
