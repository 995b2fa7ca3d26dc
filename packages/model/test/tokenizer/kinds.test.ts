// Every kind of tokenizer that published models have gives the ids of Rust's tokenizers, on small vocabularies and the texts that the kinds
// differ on.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { openTokenizer, type Tokenizer } from '../../src/tokenizer/tokenizer.ts';
import { tinyTexts, tinyTokenizers } from './tiny-tokenizers.ts';

const golden: Record<string, { ids: number[]; decoded: string }[]> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'rust-ids.json'), 'utf8'),
);

async function openTiny(name: string): Promise<Tokenizer> {
  await using folder = await makeTempFolder('tiny');
  await writeFile(join(folder.path, 'tokenizer.json'), JSON.stringify(tinyTokenizers[name]));
  await writeFile(join(folder.path, 'tokenizer_config.json'), '{}');
  return await openTokenizer(folder.path);
}

for (const name of Object.keys(tinyTokenizers))
  test(`${name}: ids and decoded texts are those of Rust's tokenizers`, async () => {
    const tokenizer = await openTiny(name);
    for (const [index, text] of tinyTexts.entries()) {
      const wanted = golden[name]?.[index];
      assert.deepEqual([...tokenizer.encode(text)], wanted?.ids, JSON.stringify(text));
      assert.equal(tokenizer.decode(wanted?.ids ?? []), wanted?.decoded, JSON.stringify(text));
    }
  });

test('an ordinary added token is recognised in any text, and a control token only in trusted text', async () => {
  const tokenizer = await openTiny('ordinary added tokens');
  const [tag, mask] = [tokenizer.idOf('</b>'), tokenizer.idOf('<mask>')];
  assert.deepEqual([...tokenizer.encodePlain('</b>')], [tag]);
  assert.ok(!tokenizer.encodePlain('<mask><s></s>').some((id) => id === 1 || id === 2 || id === mask));
  assert.deepEqual([...tokenizer.encode('<mask>')], [mask]);
});

test('a mark at the start of a text is left out where the text continues another', async () => {
  const tokenizer = await openTiny('Metaspace');
  const parts = [{ text: 'the', trusted: true }];
  assert.notDeepEqual(tokenizer.encodeParts(parts, { isContinued: true }), tokenizer.encodeParts(parts));
  assert.deepEqual([...tokenizer.encode('</s>the')].slice(1), [...tokenizer.encodeParts(parts, { isContinued: true })]);
});

test('a long run of combining marks or vowels has the ids of its normal form, without a long step', async () => {
  const tokenizer = await openTiny('possessive quantifiers, removed and inverted, after NFC');
  const [above, below] = ['\u0301', '\u0316'];
  const mixed = tokenizer.encodePlain(`a${(above + below).repeat(400)}`);
  assert.deepEqual(mixed, tokenizer.encodePlain(`a${below.repeat(400)}${above.repeat(400)}`));
  const [pair, vowel] = ['\u{16d68}', '\u{16d67}'];
  assert.deepEqual(tokenizer.encodePlain(vowel.repeat(1001)), tokenizer.encodePlain(pair.repeat(500) + vowel));
  let steps = 0;
  for (const _ of tokenizer.encodeSteps([{ text: `a${(above + below).repeat(100_000)}`, trusted: false }])) steps += 1;
  assert.ok(steps > 20, `${steps} steps`);
});
