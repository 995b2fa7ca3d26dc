// `millrace model check` of folders that cannot be used: one message each, with what is missing or broken and what to do.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { millrace, openIo } from '../fake-io.ts';

const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
const tokenizer = {
  added_tokens: [{ id: 256, content: '<|end|>', special: true }],
  normalizer: null,
  pre_tokenizer: byteLevel,
  decoder: byteLevel,
  model: { type: 'BPE', vocab: { a: 0 }, merges: [] },
};
const file = JSON.stringify(tokenizer);
const bytes = Array.from({ length: 256 }, (_, rank) => ({ rank, token_bytes: Buffer.of(rank).toString('base64') }));
const tekken = JSON.stringify({
  config: { pattern: '\\S+|\\s+', default_vocab_size: 276, default_num_special_tokens: 20 },
  vocab: bytes,
});
const config = JSON.stringify({ eos_token: '<|end|>', chat_template: '{{ messages[0].content }}<|end|>' });

interface BrokenFolder {
  readonly files: Readonly<Record<string, string>>;
  readonly wrong: RegExp;
  readonly remedy: RegExp;
}

const folders: Readonly<Record<string, BrokenFolder>> = {
  'no tokenizer': {
    files: { 'config.json': '{}', 'tokenizer_config.json': config },
    wrong: /no tokenizer\.json in .*it has config\.json, tokenizer_config\.json/,
    remedy: /Set model\.tokenizer to the model's folder/,
  },
  'an empty JSON object': {
    files: { 'tokenizer.json': '{}', 'tokenizer_config.json': config },
    wrong: /tokenizer\.json is broken: .*no model with a vocabulary/,
    remedy: /Download it again/,
  },
  'an empty file': {
    files: { 'tokenizer.json': '', 'tokenizer_config.json': config },
    wrong: /tokenizer\.json is broken: it is empty/,
    remedy: /Download it again/,
  },
  'a pointer of Git LFS': {
    files: { 'tokenizer.json': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n', 'tokenizer_config.json': config },
    wrong: /tokenizer\.json is broken: it is a pointer of Git LFS/,
    remedy: /git lfs pull/,
  },
  'tekken.json alone': {
    files: { 'tekken.json': tekken },
    wrong: /no chat template in /,
    remedy: /set model\.chatTemplate to a \.jinja file/,
  },
  'a tiktoken vocabulary alone': {
    files: { 'qwen.tiktoken': 'IQ== 0' },
    wrong: /it has qwen\.tiktoken, a tiktoken vocabulary/,
    remedy: /convert it with: python -c/,
  },
  'a SentencePiece model alone': {
    files: { 'tokenizer.model': 'x', 'tokenizer_config.json': config },
    wrong: /it has tokenizer\.model, a SentencePiece model/,
    remedy: /convert it with: python -c/,
  },
  'no template': {
    files: { 'tokenizer.json': file, 'tokenizer_config.json': '{"eos_token": "<|end|>"}' },
    wrong: /no chat template in .*neither chat_template\.jinja nor a chat_template in tokenizer_config\.json/,
    remedy: /Copy it from the model's repository/,
  },
  'a truncated tokenizer.json': {
    files: { 'tokenizer.json': file.slice(0, 100), 'tokenizer_config.json': config },
    wrong: /tokenizer\.json is broken: .*JSON/,
    remedy: /Download it again/,
  },
  'a truncated tokenizer_config.json': {
    files: { 'tokenizer.json': file, 'tokenizer_config.json': config.slice(0, 30) },
    wrong: /tokenizer_config\.json is broken: .*JSON/,
    remedy: /Download it again/,
  },
  'a tokenizer of an unknown type': {
    files: {
      'tokenizer.json': JSON.stringify({ ...tokenizer, model: { type: 'WordPiece', vocab: { a: 0 } } }),
      'tokenizer_config.json': config,
    },
    wrong: /its model is of type WordPiece; supported are BPE and Unigram/,
    remedy: /Set model\.tokenizer to the address of a backend/,
  },
  'weights alone': {
    files: { 'model-00001-of-00002.safetensors': 'x', 'model.safetensors.index.json': '{}', 'config.json': '{}' },
    wrong: /it has weights but no tokenizer/,
    remedy: /copy tokenizer\.json and tokenizer_config\.json from the model's repository/,
  },
  'a template that cannot be read': {
    files: { 'tokenizer.json': file, 'tokenizer_config.json': '{"eos_token": "<|end|>", "chat_template": "{% for %}"}' },
    wrong: /the chat template of .*line 1/,
    remedy: /model\.chatTemplate/,
  },
};

async function check(path: string): Promise<string> {
  const { code, out, err } = await millrace(['model', 'check', path], openIo());
  assert.equal(code, 1, out);
  assert.equal(out, '');
  assert.equal(err.trimEnd().split('\n').length, 1, err);
  assert.ok(err.includes(path), err);
  return err;
}

for (const [name, { files, wrong, remedy }] of Object.entries(folders))
  test(`a folder with ${name} is refused in one line that says what to do`, async () => {
    await using folder = await makeTempFolder('model');
    for (const [path, content] of Object.entries(files)) await writeFile(join(folder.path, path), content);
    const message = await check(folder.path);
    assert.match(message, wrong);
    assert.match(message, remedy);
  });

test('a path that leads nowhere, to a file, or to a folder of models is named', async () => {
  await using folder = await makeTempFolder('models');
  await mkdir(join(folder.path, 'qwen3'));
  await writeFile(join(folder.path, 'qwen3/tokenizer.json'), file);
  assert.match(await check(join(folder.path, 'none')), /there is no such folder.*Set model\.tokenizer/);
  assert.match(await check(join(folder.path, 'qwen3/tokenizer.json')), /is a file.*Set model\.tokenizer to the folder that it is in/);
  assert.match(await check(folder.path), /no tokenizer\.json in .*qwen3 in it has one.*Set model\.tokenizer/);
});
