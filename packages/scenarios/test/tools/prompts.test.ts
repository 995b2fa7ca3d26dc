// The user's own prompts and tool descriptions.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { openTools } from '../../src/open-tools.ts';
import { Prompts, promptTexts, readPrompts, renderPromptFiles } from '../../src/tools/prompts.ts';
import { toolNames } from '../../src/tools/tool-names.ts';

async function write(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

test('a file replaces one text, and what is filled in is not searched for names', async () => {
  await using folder = await makeTempFolder('prompts');
  await write(folder.path, { 'math.md': 'Q: {{question}}\nA:\n' });
  const prompts = readPrompts(folder.path);
  assert.equal(prompts.render('math', { question: 'is {{question}} $& text?' }), 'Q: is {{question}} $& text?\nA:');
  assert.equal(prompts.render('shell', { workspace: '/w', use: '', ending: '' }), 'You work in a Linux shell, in /w.');
});

test('a tool is described in the words of its file, and works as before', async () => {
  await using folder = await makeTempFolder('prompts');
  await write(folder.path, { 'tools/think.json': '{"description": "Ponder.", "parameters": {"thought": "What you ponder."}}' });
  const [think, finish] = openTools(['think', 'finish'], readPrompts(folder.path));
  assert.equal(think?.spec.description, 'Ponder.');
  assert.deepEqual(think?.spec.parameters, {
    type: 'object',
    properties: { thought: { type: 'string', description: 'What you ponder.' } },
    required: ['thought'],
  });
  assert.deepEqual(finish?.spec, openTools(['finish'])[0]?.spec);
  const result = await think?.run({ thought: 'x' }, { timeoutMs: 1, signal: new AbortController().signal });
  assert.deepEqual(result, { kind: 'text', text: '[noted]' });
});

test('a file that replaces nothing is refused with its name and what there is', async () => {
  const table: readonly [string, string, RegExp][] = [
    ['maths.md', 'x', /maths\.md: no prompt has this file; there are math\.md, /],
    ['math.md', '{{queston}}', /math\.md: \{\{queston\}\} is not known here; it may use \{\{question\}\}/],
    ['tools/vim.json', '{}', /vim\.json: no built-in tool has this file; there are bash\.json, /],
    ['tools/bash.json', '{', /bash\.json: it is not JSON/],
    ['tools/bash.json', '{"name": "sh"}', /bash\.json: .*name/],
    ['tools/bash.json', '{"parameters": {"cmd": "x"}}', /bash has no parameter cmd; it has command, timeout_s/],
  ];
  for (const [file, text, message] of table) {
    await using folder = await makeTempFolder('prompts');
    await write(folder.path, { [file]: text });
    assert.throws(() => readPrompts(folder.path), message);
  }
  assert.throws(() => readPrompts('/nowhere'), /\/nowhere: there is no such folder/);
});

test('the files to start from are all texts there are, and change nothing', async () => {
  await using folder = await makeTempFolder('prompts');
  const files = renderPromptFiles();
  assert.equal(Object.keys(files).length, Object.keys(promptTexts).length + toolNames.length);
  await write(folder.path, files);
  const prompts = readPrompts(folder.path);
  const none = new Prompts();
  assert.equal(prompts.render('math', { question: 'q' }), none.render('math', { question: 'q' }));
  assert.deepEqual(
    openTools([...toolNames], prompts).map(({ spec }) => spec),
    openTools([...toolNames]).map(({ spec }) => spec),
  );
});
