// What counts as an action, and the frame of its observation, as tables.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frameObservation, parseAction } from '../../src/tool-server/parse-action.ts';

const fence = '```';

test('an action is in tags, in a fenced block, or a tool call in JSON', () => {
  const table: readonly (readonly [string, string | undefined, string | undefined])[] = [
    ['I look. <bash>ls</bash>', 'bash', 'ls'],
    ['<bash> cd /tmp </bash> then <bash>pwd</bash>', 'bash', 'cd /tmp\npwd'],
    [`${fence}sh\nls\n${fence}`, 'bash', 'ls'],
    [`${fence}terminal\nls\n${fence}`, 'bash', 'ls'],
    ['<python>1 + 1</python>', 'python', '1 + 1'],
    [`${fence}python\nprint(2)\n${fence}\n${fence}output`, 'python', 'print(2)'],
    ['<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>', 'bash', 'ls'],
    ['<tool_call>{"name": "ipython", "arguments": {"code": "3"}}</tool_call>', 'python', '3'],
    ['<tool_call>{"name": "search", "arguments": {"query": "3"}}</tool_call>', undefined, undefined],
    ['<tool_call>{"name": </tool_call>', undefined, undefined],
    [`${fence}bashful\nls\n${fence}`, undefined, undefined],
    ['<bash>ls', undefined, undefined],
    ['The answer is 4.', undefined, undefined],
  ];
  for (const [text, tool, code] of table) {
    const found = parseAction(text);
    assert.deepEqual([found?.tool, found?.code], [tool, code], text);
  }
});

test('a long text of openings without an end is read once', () => {
  assert.equal(parseAction('<bash>'.repeat(200_000)), undefined);
});

test('an observation continues what the action has opened', () => {
  const table: readonly (readonly [string, string])[] = [
    [`${fence}bash\nls\n${fence}\n${fence}output`, `\na\n${fence}\n`],
    ['<tool_call>…</tool_call>', `\n${fence}output\na\n${fence}\n`],
    ['<bash>ls</bash><o>', '\na\n</o>\n'],
    ['<bash>ls</bash>', '\n<o>\na\n</o>\n'],
    ['<python>1</python>', '\n<output>\na\n</output>\n'],
    [`${fence}bash\nls\n${fence}`, `\n${fence}output\na\n${fence}\n`],
    [`${fence}bash\nls\n${fence}\n${fence}`, `output\na\n${fence}\n`],
  ];
  for (const [action, framed] of table) assert.equal(frameObservation(action, 'a'), framed, action);
});
