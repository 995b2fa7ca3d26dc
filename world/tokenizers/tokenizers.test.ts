// Our tokenizers give the ids of Rust's for every published tokenizer, forge no control token, and never block for long.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openCollection, skipWithoutTokenizers } from './collection.ts';
import { compareTokenizer, type TokenizerComparison, toTable } from './compare.ts';
import { openNewCharacters } from './unicode-tables.ts';
import { goldenPath, renderGolden } from './write-golden.ts';

const skip = skipWithoutTokenizers();

test('published tokenizers: no text differs but for new code points, no control token is forged, no step is long', {
  skip,
  timeout: 1_800_000,
}, async () => {
  const rows: TokenizerComparison[] = [];
  const isNew = openNewCharacters();
  for (const published of openCollection()) rows.push(await compareTokenizer(published, { count: 2000, isNew }));
  console.log(toTable(rows));
  assert.ok(rows.length >= 30, `only ${rows.length} tokenizers`);
  assert.deepEqual(
    rows.flatMap(({ name, differences }) => differences.map((one) => `${name}: ${one}`)),
    [],
  );
  assert.deepEqual(
    rows.filter(({ forged }) => forged > 0).map(({ name }) => name),
    [],
  );
  assert.deepEqual(
    rows
      .filter(({ longestStepMs }) => longestStepMs > 20)
      .map(({ name, longestStepMs, longestText }) => `${name}: ${longestStepMs} ms for ${longestText}`),
    [],
  );
});

test("the ids in the unit tests are those of Rust's tokenizers", { skip, timeout: 120_000 }, () => {
  assert.equal(readFileSync(goldenPath, 'utf8'), renderGolden(), 'run node world/tokenizers/write-golden.ts');
});
