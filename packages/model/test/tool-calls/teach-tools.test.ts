// Tools in the messages, for templates that do not declare them. What is shown to the model is what the parser reads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message, ToolSpec } from '@millrace/protocol';
import { teachTools, writeCall } from '../../src/tool-calls/teach-tools.ts';
import { findToolParser } from '../../src/tool-calls/tool-parsers.ts';

const formats = ['hermes', 'qwen3-coder', 'llama3-json', 'mistral', 'fenced'] as const;
const tools: readonly ToolSpec[] = [
  {
    name: 'bash',
    description: 'Runs a command.',
    parameters: { type: 'object', properties: { command: { type: 'string' }, timeout: { type: 'integer' } }, required: ['command'] },
  },
];
const user: Message = { role: 'user', content: 'Count the files.' };

for (const format of formats) {
  test(`${format}: a call is read back as it was written`, () => {
    const call = { name: 'bash', arguments: { command: 'printf "%s\\n" <a> | wc -l\nls' } };
    const { calls, malformed } = findToolParser(format).parse(writeCall(format, call), tools);
    assert.deepEqual(malformed, []);
    assert.deepEqual(
      calls.map(({ name, arguments: args }) => ({ name, arguments: args })),
      [call],
    );
  });

  test(`${format}: the system message shows a call that the parser reads`, () => {
    const [system, ...rest] = teachTools([user], tools, { format, hasSystem: true });
    assert.equal(system?.role, 'system');
    assert.deepEqual(rest, [user]);
    assert.match(system?.content ?? '', /Runs a command\./);
    assert.ok(system?.content.includes(writeCall(format, { name: 'bash', arguments: { command: 'ls' } })));
  });
}

test('the tools follow the system message of the scenario, or come before the first user message', () => {
  const rules: Message = { role: 'system', content: 'Be brief.' };
  const [first, second, ...others] = teachTools([rules, user], tools, { format: 'hermes', hasSystem: true });
  assert.match(first?.content ?? '', /^Be brief\.\n\nYou can use these tools:/);
  assert.deepEqual([second, others], [user, []]);
  const [only] = teachTools([user], tools, { format: 'hermes', hasSystem: false });
  assert.match(only?.content ?? '', /^You can use these tools:(?:.|\n)*\n\nCount the files\.$/);
});

test('the calls of earlier turns are written in the same format', () => {
  const call = { id: 'call00000', name: 'bash', arguments: { command: 'ls' } };
  const messages: Message[] = [user, { role: 'assistant', content: 'I look.', tool_calls: [call] }];
  const [, , said] = teachTools(messages, tools, { format: 'hermes', hasSystem: true });
  assert.deepEqual(said, { role: 'assistant', content: `I look.\n${writeCall('hermes', call)}` });
});
