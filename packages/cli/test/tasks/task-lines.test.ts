// From JSON lines to submissions: siblings, bare tasks, and fields that options set.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LineOptions, parseTaskLines } from '../../src/tasks/task-lines.ts';

function read(text: string, options: LineOptions) {
  const { submissions, bad } = parseTaskLines(text, options);
  assert.deepEqual(bad, []);
  return submissions;
}

test('siblings make groups, and a scenario makes bare lines tasks', () => {
  const options = { scenario: 'math', siblings: 2, prefix: 'g' };
  const bare = { scenario: 'math', task: { question: 'q' }, group: 'g-2' };
  assert.deepEqual(read('\n{"question":"q"}', options), [bare, bare]);
  assert.deepEqual(read('{"id":"x","task":{},"scenario":"shell"}', options), [
    { id: 'x-1', scenario: 'shell', task: {}, group: 'x' },
    { id: 'x-2', scenario: 'shell', task: {}, group: 'x' },
  ]);
  assert.deepEqual(
    read('{"id":"x","group":"mine","task":{}}', options).map((one) => one.group),
    ['mine', 'mine'],
  );
});

test('fields from options are set on every line, over what the line says', () => {
  const fields = { sampling: { max_tokens: 64 }, limits: { max_turns: 3 } };
  const line = '{"scenario":"math","task":{},"sampling":{"max_tokens":9,"top_p":0.5}}';
  const [one] = read(line, { siblings: 1, prefix: 'g', fields });
  assert.deepEqual(one, { scenario: 'math', task: {}, sampling: { max_tokens: 64, top_p: 0.5 }, limits: { max_turns: 3 } });
});
