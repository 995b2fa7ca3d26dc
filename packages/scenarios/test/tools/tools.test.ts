// The built-in tools by name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cutText } from '../../src/tools/cut-text.ts';
import { needsSandbox, toolChoice, toolNames } from '../../src/tools/tool-names.ts';
import { openTool } from '../../src/tools/tools.ts';

test('every name opens the tool of that name, and any other name is refused', () => {
  for (const name of toolNames) assert.equal(openTool(name).spec.name, name);
  for (const name of ['vim', 'constructor']) assert.throws(() => openTool(name), /no tool is named/);
});

test('each rollout has its own file editor', () => {
  assert.notEqual(openTool('str_replace_editor'), openTool('str_replace_editor'));
});

const context = { timeoutMs: 1000, signal: new AbortController().signal };

test('think changes nothing and says so; wrong arguments are described to the model', async () => {
  assert.deepEqual(await openTool('think').run({ thought: 'first the small case' }, context), { kind: 'text', text: '[noted]' });
  const wrong = await openTool('think').run({ idea: 1 }, context);
  assert.match(wrong.kind === 'text' ? wrong.text : '', /^think: .*thought/s);
});

test('submit ends without an answer, and finish with its answer, also under the name that other services use', async () => {
  assert.deepEqual(await openTool('submit').run({}, context), { kind: 'finish', answer: '' });
  assert.deepEqual(await openTool('finish').run({ answer: '4' }, context), { kind: 'finish', answer: '4' });
  assert.deepEqual(await openTool('finish').run({ message: '5', task_completed: true }, context), { kind: 'finish', answer: '5' });
});

test('a task chooses each tool once, and needs a sandbox only for some', () => {
  assert.deepEqual(toolChoice.parse(['think', 'finish']), ['think', 'finish']);
  assert.match(toolChoice.safeParse(['bash', 'bash']).error?.message ?? '', /a tool is named twice/);
  assert.deepEqual([needsSandbox(['think', 'finish']), needsSandbox(['think', 'ipython'])], [false, true]);
});

test('a long result keeps its head and its tail, whole lines where it can, and says what was cut', () => {
  const lines = Array.from({ length: 1000 }, (_, i) => `line ${i}`).join('\n');
  const cut = cutText(lines, { most: 1000, advice: 'ask for less' });
  const [, count = ''] = /\n\[\.\.\. (\d+) characters left out: ask for less \.\.\.\]\n/.exec(cut) ?? [];
  const [head = '', tail = ''] = cut.split(/\n\[\.\.\. .* \.\.\.\]\n/);
  assert.ok(lines.startsWith(`${head}\n`) && lines.endsWith(`\n${tail}`));
  assert.equal(head.length + tail.length + Number(count), lines.length);
  assert.equal(cutText('short'), 'short');
  assert.ok(cutText('🙂'.repeat(1000), { most: 101 }).isWellFormed());
});
