// Outputs are compared by lines and words, numbers by value.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSameOutput } from '../../../src/code/output/compare-output.ts';
import { isSameJson } from '../../../src/code/output/exact-json.ts';

const lines = { by: 'lines', tolerance: 0 } as const;

test('space at ends and between words, and kinds of line ends, do not count', () => {
  for (const given of ['1 2\n3\n', '  1  2 \r\n3', '1 2\n3\n\n\n', '\n1\t2\n 3 '])
    assert.ok(isSameOutput(given, '1 2\n3', lines), JSON.stringify(given));
});

test('lines count, unless only words do', () => {
  assert.equal(isSameOutput('1\n2', '1 2', lines), false);
  assert.ok(isSameOutput('1\n2', '1 2', { by: 'words', tolerance: 0 }));
  assert.equal(isSameOutput('1\n\n2', '1\n2', lines), false);
});

test('numbers are equal by value, however many digits they have', () => {
  for (const [given, expected] of [
    ['1.0', '1'],
    ['0.50', '.5'],
    ['1e3', '1000'],
    ['-0', '0'],
    ['+7', '7'],
    ['100000000000000000000.0', '100000000000000000000'],
  ] as const)
    assert.ok(isSameOutput(given, expected, lines), given);
  assert.equal(isSameOutput('100000000000000000001', '100000000000000000000', lines), false);
  assert.equal(isSameOutput('0.3333', '0.33333', lines), false);
});

test('a tolerance is for decimals only', () => {
  const near = { by: 'lines', tolerance: 1e-5 } as const;
  assert.ok(isSameOutput('0.333333', '0.33333334', near));
  assert.ok(isSameOutput('3', '3.000001', near));
  assert.equal(isSameOutput('1000000', '1000001', near), false);
  assert.equal(isSameOutput('nan', '1.5', near), false);
});

test('words differ by case', () => assert.equal(isSameOutput('yes', 'YES', lines), false));

test('results of functions are compared as JSON, with whole numbers of any size', () => {
  assert.ok(isSameJson('[1, 2.0]', '[1.0, 2]', 0));
  assert.ok(isSameJson('{"a": 1, "b": [true]}', '{"b":[true],"a":1}', 0));
  assert.equal(isSameJson('9007199254740993', '9007199254740992', 0), false);
  assert.equal(isSameJson('0.1', '0.10001', 0), false);
  assert.ok(isSameJson('0.1', '0.100001', 1e-5));
  assert.equal(isSameJson('"1"', '1', 0), false);
});
