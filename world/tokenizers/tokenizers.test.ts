// Our tokenizers give the ids of Rust's for a published tokenizer of each kind, forge no control token, and take no step above 20 ms.
// `node world/tokenizers/compare.ts` compares all of them, which takes ten minutes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openCollection, skipWithoutTokenizers } from './collection.ts';
import { compareTokenizer, longestAllowedMs, type TokenizerComparison, toTable } from './compare.ts';
import { openNewCharacters } from './unicode-tables.ts';
import { goldenPath, renderGolden } from './write-golden.ts';

const skip = skipWithoutTokenizers();
/** Byte-level BPE with three kinds of patterns, SentencePiece with and without its own spaces, several splits after each other, and tekken. */
const kinds = [
  'npm/qwen3',
  'npm/gpt2',
  'npm/command_r_plus',
  'npm/llama2',
  'npm/gemma3',
  'llama.cpp/falcon',
  'mistral-common/tekken_240911',
];

test('published tokenizers: no text differs but for new code points, no control token is forged, no step takes more than 20 ms', {
  skip,
  timeout: 1_800_000,
}, async () => {
  const rows: TokenizerComparison[] = [];
  const isNew = openNewCharacters();
  const chosen = openCollection((name) => kinds.includes(name));
  for (const published of chosen) rows.push(await compareTokenizer(published, { count: 400, isNew, measuresSteps: true }));
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
      .filter(({ longest }) => (longest?.ms ?? Number.POSITIVE_INFINITY) > longestAllowedMs)
      .map(({ name, longest }) => `${name}: ${longest?.ms} ms for ${longest?.text}`),
    [],
  );
});

test("the ids in the unit tests are those of Rust's tokenizers", { skip, timeout: 120_000 }, () => {
  assert.equal(readFileSync(goldenPath, 'utf8'), renderGolden(), 'run node world/tokenizers/write-golden.ts');
});
