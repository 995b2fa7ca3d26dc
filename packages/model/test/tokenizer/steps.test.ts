// A megabyte of hostile text is tokenised in short steps, by a tokenizer of each kind. The second tier measures published vocabularies
// with all texts, and wants less than 20 ms for each step.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { safeStart } from '../../src/tokenizer/split/normalizers.ts';
import { openTokenizer } from '../../src/tokenizer/tokenizer.ts';
import { makeHostileTexts, measureLongest } from './hostile-texts.ts';
import { tinyTokenizers } from './tiny-tokenizers.ts';

/** Of processor time. A part that does not work in steps takes 100 ms or more for one of the texts. */
const limitMs = 50;
const names = ['two signs', 'spaces before a letter and a space', 'spelled control tokens'];
const texts = new Map(
  makeHostileTexts()
    .entries()
    .filter(([name]) => names.includes(name)),
);

for (const kind of [
  'punctuation, bytes, then digits',
  'possessive quantifiers, removed and inverted, after NFC',
  'a mark before each text',
  'Unigram',
])
  test(`${kind}: no long step for a megabyte of hostile text`, async () => {
    await using folder = await makeTempFolder('tiny');
    await writeFile(join(folder.path, 'tokenizer.json'), JSON.stringify(tinyTokenizers[kind]));
    await writeFile(join(folder.path, 'tokenizer_config.json'), '{}');
    assert.equal(texts.size, names.length);
    const { ms, text } = measureLongest(await openTokenizer(folder.path), texts, limitMs);
    assert.ok(ms < limitMs, `a step of ${ms} ms for ${text}`);
  });

test('a text is cut for normalisation only before characters that no normal form joins with the one before', () => {
  const isSafe = (character: string) => character.search(safeStart) === 0;
  const characters = Array.from({ length: 0x11_0000 }, (_, code) => code)
    .filter((code) => code < 0xd800 || code >= 0xe000)
    .map((code) => String.fromCodePoint(code));
  const followers = new Set(characters.flatMap((character) => [...character.normalize('NFD')].slice(1)));
  const isMoved = (mark: string) =>
    `${mark}\u0334`.normalize('NFD') !== `${mark}\u0334` || `\u0301${mark}`.normalize('NFD') !== `\u0301${mark}`;
  const wrong = characters.filter((character) => {
    if (!isSafe(character)) return false;
    const firsts = ['NFD', 'NFKD'].map((form) => [...character.normalize(form)][0] ?? '');
    return firsts.some((first) => followers.has(first) || isMoved(first));
  });
  assert.deepEqual(wrong, []);
  assert.ok(['\u0301', '\u1161', '\u{16d67}'].every((character) => followers.has(character) && !isSafe(character)));
});
