// Our tokenizers give the ids of Rust's for a published tokenizer of each kind, forge no control token, and never block for seconds.
// `node world/tokenizers/compare.ts` compares all of them, which takes ten minutes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openCollection, skipWithoutTokenizers } from './collection.ts';
import { compareTokenizer, type TokenizerComparison, toTable } from './compare.ts';
import { openNewCharacters } from './unicode-tables.ts';
import { goldenPath, renderGolden } from './write-golden.ts';

const skip = skipWithoutTokenizers();
/** For a megabyte. The aim is 20 ms, and docs/tokens.md names the vocabularies that miss it; a pattern that backtracks takes seconds. */
const longestMs = 1000;
/** Byte-level BPE with three kinds of patterns, SentencePiece with and without its own spaces, and several splits after each other. */
const kinds = ['npm/qwen3', 'npm/gpt2', 'npm/command_r_plus', 'npm/llama2', 'npm/gemma3', 'llama.cpp/falcon'];

test('published tokenizers: no text differs but for new code points, no control token is forged, no step takes long', {
  skip,
  timeout: 1_800_000,
}, async () => {
  const rows: TokenizerComparison[] = [];
  const isNew = openNewCharacters();
  const chosen = openCollection().filter(({ name }) => kinds.includes(name));
  for (const published of chosen) rows.push(await compareTokenizer(published, { count: 400, isNew }));
  console.log(toTable(rows));
  assert.equal(rows.length, kinds.length);
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
