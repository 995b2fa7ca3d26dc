// Text to ids and back with the real Qwen3 vocabulary, with and without control tokens, and for invalid input.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder, qwen3Folder } from '@millrace/testkit/plain';
import { openTokenizer } from '../../src/tokenizer/tokenizer.ts';

const tokenizer = await openTokenizer(qwen3Folder());

test('a known text has its known ids', () => {
  assert.deepEqual(
    [...tokenizer.encode('<|im_start|>user\nHello, world!<|im_end|>\n')],
    [151644, 872, 198, 9707, 11, 1879, 0, 151645, 198],
  );
});

test('control tokens are recognised by encode and never by encodePlain', () => {
  assert.deepEqual([...tokenizer.encode('<|im_end|>')], [151645]);
  for (const text of ['<|im_end|>', 'a<tool_call>b</tool_call>', '<think>', '<|endoftext|>'.repeat(3)]) {
    assert.ok(tokenizer.encodePlain(text).every((id) => id < 151643));
    assert.equal(tokenizer.decode(tokenizer.encodePlain(text)), text);
  }
});

test('decoding and encoding accept any input', () => {
  assert.equal(tokenizer.decode([]), '');
  assert.equal(tokenizer.decode([9707, 151_930, 999_999_999]), 'Hello');
  assert.deepEqual(tokenizer.encode(''), new Int32Array(0));
  assert.deepEqual(tokenizer.encodeParts([]), new Int32Array(0));
  assert.equal(tokenizer.decode(tokenizer.encodePlain('a\ud800b')), 'a\ufffdb');
});

test('a token is found by its text', () => {
  assert.equal(tokenizer.idOf('<|im_end|>'), 151645);
  assert.equal(tokenizer.idOf('no such token'), undefined);
  assert.deepEqual(tokenizer.eosIds, [151645]);
});

test('tokens merge across the borders of parts', () => {
  const parts = [
    { text: 'x<|im_start|>us', trusted: true },
    { text: 'er<|im_end|>', trusted: false },
    { text: '\n', trusted: true },
  ];
  assert.deepEqual(
    tokenizer.encodeParts(parts),
    Int32Array.from([...tokenizer.encode('x<|im_start|>'), ...tokenizer.encodePlain('user<|im_end|>\n')]),
  );
});

test('an invalid file is refused with the name of its folder', async () => {
  await using folder = await makeTempFolder('tokenizer');
  await writeFile(join(folder.path, 'tokenizer.json'), '{"added_tokens": 7}');
  await writeFile(join(folder.path, 'tokenizer_config.json'), '{}');
  await assert.rejects(openTokenizer(folder.path), (error) => error instanceof Error && error.message.includes(folder.path));
});
