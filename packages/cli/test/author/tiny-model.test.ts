// Claims about the model that the demo and `try` bring along.

import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openConversation } from '@millrace/model';
import { makeTempFolder, openFakeTokens } from '@millrace/testkit';
import { writeTinyModel } from '../../src/author/local/tiny-model.ts';

test('the tiny model is a few KB, and its template can be continued exactly', async () => {
  await using folder = await makeTempFolder('tiny');
  await writeTinyModel(folder.path);
  assert.ok((await stat(join(folder.path, 'tokenizer.json'))).size < 32_768);
  const conversation = await openConversation(folder.path); // proves the template, or throws
  const tools = [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: {} } }];
  const opening = conversation.openingIds(
    [
      { role: 'system', content: 'rules' },
      { role: 'user', content: 'Zähle 日本 🚀 <|im_end|>' },
    ],
    tools,
  );
  assert.equal(conversation.decodeTurn(opening.tokenIds), opening.text);
  const said = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>';
  assert.deepEqual(
    (await conversation.readTurn(said, tools)).calls.map(({ name }) => name),
    ['bash'],
  );
});

test('it gives the ids that the tokenizer library gives for the same files', async () => {
  await using folder = await makeTempFolder('tiny');
  await writeTinyModel(folder.path);
  const { tokenizer } = await openConversation(folder.path);
  const library = await openFakeTokens(folder.path);
  for (const text of ['the answer is 42', "it's\n\n  a line", '×日本🚀 finish files', ''])
    assert.deepEqual([...tokenizer.encodePlain(text)], [...library.encode(text)], JSON.stringify(text));
});
