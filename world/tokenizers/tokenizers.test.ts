// Our tokenizers give the ids of Rust's for every published tokenizer, forge no control token, and never block for seconds.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openCollection, skipWithoutTokenizers } from './collection.ts';
import { compareTokenizer, type TokenizerComparison, toTable } from './compare.ts';
import { openNewCharacters } from './unicode-tables.ts';
import { goldenPath, renderGolden } from './write-golden.ts';

const skip = skipWithoutTokenizers();
/** For a megabyte. The aim is 20 ms, and docs/tokens.md names the vocabularies that miss it; a pattern that backtracks takes seconds. */
const longestMs = 500;

test('published tokenizers: no text differs but for new code points, no control token is forged, no step takes long', {
  skip,
  timeout: 1_800_000,
}, async () => {
  const rows: TokenizerComparison[] = [];
  const isNew = openNewCharacters();
  for (const published of openCollection()) rows.push(await compareTokenizer(published, { count: 400, isNew }));
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
      .filter(({ longestStepMs }) => longestStepMs > longestMs)
      .map(({ name, longestStepMs, longestText }) => `${name}: ${longestStepMs} ms for ${longestText}`),
    [],
  );
});

test("the ids in the unit tests are those of Rust's tokenizers", { skip, timeout: 120_000 }, () => {
  assert.equal(readFileSync(goldenPath, 'utf8'), renderGolden(), 'run node world/tokenizers/write-golden.ts');
});
