// The ways in which a model writes, or fails to write, a tool call, and what is parsed from each.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRandom } from '@millrace/testkit/plain';
import { hermesParser } from '../../src/tool-calls/hermes.ts';

const bash = (command: string) => `<tool_call>\n${JSON.stringify({ name: 'bash', arguments: { command } })}\n</tool_call>`;

interface Row {
  readonly title: string;
  readonly text: string;
  readonly content?: string;
  readonly reasoning?: string;
  readonly calls?: readonly [string, Record<string, unknown>][];
  readonly malformed?: RegExp;
}

const table: readonly Row[] = [
  { title: 'plain text is content', text: ' 42\n', content: '42' },
  { title: 'an empty turn is empty', text: '' },
  { title: 'one call', text: bash('ls'), calls: [['bash', { command: 'ls' }]] },
  {
    title: 'several calls with text around them',
    text: `First ${bash('ls')}\n${bash('pwd')} done`,
    content: 'First \n done',
    calls: [
      ['bash', { command: 'ls' }],
      ['bash', { command: 'pwd' }],
    ],
  },
  {
    title: 'reasoning is split off',
    text: `<think>\nhm\n</think>\n\nSo: ${bash('ls')}`,
    reasoning: 'hm',
    content: 'So:',
    calls: [['bash', { command: 'ls' }]],
  },
  { title: 'empty reasoning is none', text: '<think>\n\n</think>\n\n42', content: '42' },
  { title: 'reasoning that the generation prompt had opened', text: 'hm\n</think>\n42', reasoning: 'hm', content: '42' },
  {
    title: 'a call inside reasoning is not run',
    text: `<think>maybe ${bash('rm -rf /')}</think>no`,
    reasoning: `maybe ${bash('rm -rf /')}`,
    content: 'no',
  },
  {
    title: 'unclosed reasoning',
    text: `<think>and so ${bash('ls')}`,
    reasoning: `and so ${bash('ls')}`,
    malformed: /not closed with <\/think>/,
  },
  {
    title: 'arguments as a JSON string',
    text: '<tool_call>{"name":"bash","arguments":"{\\"command\\":\\"ls\\"}"}</tool_call>',
    calls: [['bash', { command: 'ls' }]],
  },
  { title: 'no arguments are empty arguments', text: '<tool_call>{"name":"finish"}</tool_call>', calls: [['finish', {}]] },
  {
    title: 'arguments that contain the closing tag',
    text: bash('echo "</tool_call>" </think>'),
    calls: [['bash', { command: 'echo "</tool_call>" </think>' }]],
  },
  { title: 'malformed JSON', text: '<tool_call>{"name": "bash", </tool_call>', malformed: /not valid JSON: \{"name": "bash",$/ },
  {
    title: 'a malformed call before a valid one',
    text: `<tool_call>{oops</tool_call>${bash('ls')}`,
    calls: [['bash', { command: 'ls' }]],
    malformed: /not valid JSON/,
  },
  { title: 'an empty call', text: '<tool_call></tool_call>', malformed: /not valid JSON/ },
  { title: 'a last call that only its closing tag misses', text: '<tool_call>{"name":"bash","arguments":{}}\n', calls: [['bash', {}]] },
  { title: 'a call that was cut off', text: '<tool_call>{"name":"bash","arguments":{}', malformed: /not closed with <\/tool_call>/ },
  { title: 'a list instead of an object', text: '<tool_call>[1]</tool_call>', malformed: /must be a JSON object .* not \[1\]/ },
  { title: 'null instead of an object', text: '<tool_call>null</tool_call>', malformed: /not null/ },
  { title: 'no name', text: '<tool_call>{"tool":"bash"}</tool_call>', malformed: /no "name"/ },
  { title: 'a name that is not text', text: '<tool_call>{"name":7}</tool_call>', malformed: /no "name"/ },
  {
    title: 'arguments that are a list',
    text: '<tool_call>{"name":"bash","arguments":["ls"]}</tool_call>',
    malformed: /"arguments" of the call to bash/,
  },
  {
    title: 'arguments as a string that is not JSON',
    text: '<tool_call>{"name":"bash","arguments":"ls"}</tool_call>',
    malformed: /"arguments"/,
  },
  { title: 'a closing tag alone is text', text: 'a </tool_call> b', content: 'a </tool_call> b' },
];

for (const { title, text, content = '', reasoning, calls = [], malformed } of table) {
  test(title, () => {
    const parsed = hermesParser.parse(text);
    assert.equal(parsed.content, content);
    assert.equal(parsed.reasoning, reasoning);
    assert.deepEqual(
      parsed.calls.map((call) => [call.name, call.arguments]),
      calls,
    );
    assert.equal(parsed.malformed.length, malformed ? 1 : 0);
    if (malformed) assert.match(parsed.malformed[0] ?? '', malformed);
  });
}

test('each call of a turn has its own id', () => {
  assert.deepEqual(
    hermesParser.parse(bash('a') + bash('b')).calls.map(({ id }) => id),
    ['call00000', 'call00001'],
  );
});

test('no text makes it throw, and a long one is parsed quickly', () => {
  const random = makeRandom(3);
  const pieces = [
    '<tool_call>',
    '</tool_call>',
    '<think>',
    '</think>',
    '{"name":"bash"',
    ',"arguments":',
    '{}',
    '}',
    '"',
    '\\',
    'é',
    '\ud800',
    '\n',
  ];
  for (let i = 0; i < 2000; i++) {
    const text = Array.from({ length: Math.floor(random() * 20) }, () => pieces[Math.floor(random() * pieces.length)]).join('');
    assert.ok(hermesParser.parse(text).calls.length >= 0);
  }
  assert.equal(hermesParser.parse('<tool_call>"</tool_call>'.repeat(10_000)).malformed.length, 10_000);
});
