// A conversation through a backend's tokenizer: the same ids as from the folder, no forged control tokens, and a clear refusal otherwise.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Pace } from '@millrace/base/pace';
import type { Message } from '@millrace/protocol';
import {
  makeRandom,
  openFakeBackend,
  openFakeTokens,
  openLlamaServer,
  qwen3Folder,
  skipWithoutLlamaServer,
  type TokenizerDialect,
} from '@millrace/testkit';
import { type Conversation, openConversation } from '../src/conversation.ts';
import { openRemoteConversation } from '../src/remote-conversation.ts';
import { alphabet, makeText, tools } from './random-text.ts';

const tokens = await openFakeTokens();
const local = await openConversation(qwen3Folder());
const pace = new Pace();
const controls = ['<|im_end|>', '<|im_start|>', '<tool_call>', '</think>', '<|endoftext|>', '<|fim_prefix|>'];
const configFile = join(qwen3Folder(), 'tokenizer_config.json');
// llama.cpp does not compose characters, and JSON cannot carry half of a surrogate pair.
const pieces = alphabet.filter((piece) => piece.isWellFormed() && piece === piece.normalize('NFC'));
const makeWellFormed = (random: () => number) => makeText(random, pieces).normalize('NFC');

async function openFake(tokenizer: TokenizerDialect) {
  return await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens, tokenizer });
}

/** Texts of users and tools give the ids of the folder; control tokens that they spell stay text. */
const noPast = { messages: [], tools: [] };

async function checkConversation(remote: Conversation): Promise<void> {
  assert.deepEqual([remote.endOfTurn, remote.stopTokenIds], [local.endOfTurn, local.stopTokenIds]);
  const random = makeRandom(5);
  for (let round = 0; round < 10; round++) {
    const opening: Message[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: makeWellFormed(random) },
    ];
    assert.deepEqual(await pace.run(remote.openingSteps(opening, tools)), local.openingIds(opening, tools));
    const answers: Message[] = [1, 2].map(() => ({ role: 'tool', content: makeWellFormed(random) }));
    const delta = await pace.run(remote.deltaSteps(answers, noPast));
    assert.deepEqual(delta, local.deltaIds(answers));
    assert.equal(await pace.run(remote.decodeSteps(delta.tokenIds)), local.decodeTurn(delta.tokenIds));
  }
  const isControl = (id: number) => id >= 151_643;
  const harmless = local.deltaIds([{ role: 'tool', content: 'x' }]).tokenIds.filter(isControl);
  for (const control of controls) {
    for (const content of [
      control,
      `a${control}b`,
      `${control}${control}`,
      `<${control}>`,
      `<|im_e${control}nd|>`,
      `<x${control}[INST]y>`,
    ]) {
      const { tokenIds, text } = await pace.run(remote.deltaSteps([{ role: 'tool', content }], noPast));
      assert.deepEqual(tokenIds.filter(isControl), harmless, content);
      assert.ok(text.includes(content));
      assert.ok((await pace.run(remote.decodeSteps(tokenIds))).includes(content), content);
    }
  }
}

for (const dialect of ['vllm-with-info', 'llamacpp'] as const) {
  test(`${dialect}: the tokenizer and the template of the server give the ids of the folder`, async () => {
    await using fake = await openFake(dialect);
    await checkConversation(await openRemoteConversation(fake.url));
  });
}

for (const dialect of ['vllm', 'sglang'] as const) {
  test(`${dialect}: without a template it is refused, and with a file it gives the ids of the folder`, async () => {
    await using fake = await openFake(dialect);
    await assert.rejects(openRemoteConversation(fake.url), new RegExp(`no usable tokenizer at ${fake.url}: it serves no chat template`));
    await checkConversation(await openRemoteConversation(fake.url, { chatTemplate: configFile }));
  });
}

test('the tokenizer and the template of a real llama-server give the ids of the folder', {
  skip: skipWithoutLlamaServer(),
}, async () => {
  await using server = await openLlamaServer({ slots: 1 });
  await checkConversation(await openRemoteConversation(server.url));
});

test('a server that cannot be reached is refused with its address', async () => {
  const fake = await openFake('vllm');
  const { url } = fake;
  await fake[Symbol.asyncDispose]();
  await assert.rejects(openRemoteConversation(url, { chatTemplate: configFile }), new RegExp(`no usable tokenizer at ${url}`));
});

test('a tokenizer that turns plain text into control tokens is refused at startup', async () => {
  const forging = { ...tokens, encode: (text: string) => (text.endsWith('<') ? Int32Array.of(151_645) : tokens.encode(text)) };
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens: forging, tokenizer: 'vllm-with-info' });
  await assert.rejects(openRemoteConversation(fake.url), /turns plain text into the control token 151645/);
});
