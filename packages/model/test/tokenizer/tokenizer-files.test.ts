// A folder whose tokenizer cannot be used gets one message: what is missing or broken, and what to do. The tests of `millrace model check`
// have more of them.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { openTokenizer } from '../../src/tokenizer/tokenizer.ts';
import { tinyTokenizers } from './tiny-tokenizers.ts';

const gpt2 = JSON.stringify(tinyTokenizers['GPT-2']);
const change = (parts: object) => JSON.stringify({ ...tinyTokenizers['GPT-2'], ...parts });

const cases: Readonly<Record<string, { readonly files: Readonly<Record<string, string>>; readonly message: RegExp }>> = {
  'an empty folder': { files: {}, message: /no tokenizer\.json in .*: it is empty\. Set model\.tokenizer/ },
  'a GGUF file': { files: { 'model.gguf': '' }, message: /model\.gguf, a GGUF file; take tokenizer\.json/ },
  'no tokenizer_config.json': { files: { 'tokenizer.json': gpt2 }, message: /no tokenizer_config\.json in .*copy it/ },
  'an unknown pre-tokenizer': {
    files: { 'tokenizer.json': change({ pre_tokenizer: { type: 'UnicodeScripts' } }), 'tokenizer_config.json': '{}' },
    message: /its pre-tokenizer UnicodeScripts is not supported.*address of a backend/,
  },
  'a pattern with a construct that is not supported': {
    files: {
      'tokenizer.json': change({ pre_tokenizer: { type: 'Split', pattern: { Regex: '\\bx' }, behavior: 'Isolated', invert: false } }),
      'tokenizer_config.json': '{}',
    },
    message: /its pattern "\\\\bx" has "\\\\b", which is not supported/,
  },
  'a broken tekken.json': { files: { 'tekken.json': '{"config": {}}' }, message: /tekken\.json is broken: .*pattern/ },
};

for (const [name, { files, message }] of Object.entries(cases))
  test(`${name}: refused with what is wrong and what to do`, async () => {
    await using folder = await makeTempFolder('model');
    for (const [file, text] of Object.entries(files)) await writeFile(join(folder.path, file), text);
    await assert.rejects(
      openTokenizer(folder.path),
      (error) => error instanceof Error && message.test(error.message) && error.message.includes(folder.path),
    );
  });

test('tekken.json alone is a tokenizer: tokens merge by rank, and special tokens come first', async () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const bytes = Array.from({ length: 256 }, (_, rank) => ({ rank, token_bytes: Buffer.of(rank).toString('base64'), token_str: null }));
  const merged = ['ab', 'bc', 'abc', ' a'].map((text, index) => ({ rank: 256 + index, token_bytes: base64(text), token_str: text }));
  const file = {
    config: {
      pattern: '\\S+|\\s+(?=\\S)|\\s+',
      num_vocab_tokens: 260,
      default_vocab_size: 263,
      default_num_special_tokens: 3,
      version: 'v3',
    },
    vocab: [...bytes, ...merged],
  };
  await using folder = await makeTempFolder('tekken');
  await writeFile(join(folder.path, 'tekken.json'), JSON.stringify(file));
  const tokenizer = await openTokenizer(folder.path);
  assert.deepEqual([...tokenizer.encode('<s>abc bc</s>')], [1, 261, 35, 260, 2]);
  assert.deepEqual(tokenizer.eosIds, [2]);
  assert.equal(tokenizer.decode([261, 35, 260]), 'abc bc');
  assert.ok(tokenizer.encodePlain('</s>').every((id) => id > 2));
});
