// What each parser reads, what it says about malformed calls, and that no text makes any of them throw or take long.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToolSpec } from '@millrace/protocol';
import { makeRandom } from '@millrace/testkit/plain';
import type { ToolFormat } from '../../src/tool-calls/tool-calls.ts';
import { findToolParser } from '../../src/tool-calls/tool-parsers.ts';

const tools: ToolSpec[] = [
  {
    name: 'bash',
    description: 'Runs a command.',
    parameters: {
      type: 'object',
      properties: { command: { type: 'string' }, timeout_s: { type: 'number' }, quiet: { type: 'boolean' }, env: { type: 'object' } },
    },
  },
];

interface Row {
  readonly parser: ToolFormat;
  readonly title: string;
  readonly text: string;
  readonly content?: string;
  readonly reasoning?: string;
  readonly calls?: readonly (readonly [string, Record<string, unknown>])[];
  readonly malformed?: RegExp;
}

const ls: readonly [string, Record<string, unknown>] = ['bash', { command: 'ls' }];
const xml = (inner: string, name = 'bash') => `<tool_call>\n<function=${name}>\n${inner}</function>\n</tool_call>`;
const xmlLs = xml('<parameter=command>\nls\n</parameter>\n');

const table: readonly Row[] = [
  { parser: 'qwen3-coder', title: 'one call', text: `Look: ${xmlLs}`, content: 'Look:', calls: [ls] },
  {
    parser: 'qwen3-coder',
    title: 'a call without its outer tag',
    text: '<function=bash><parameter=command>ls</parameter></function>',
    calls: [ls],
  },
  {
    parser: 'qwen3-coder',
    title: 'values get the types of the schema',
    text: xml(
      '<parameter=command>\n42\n</parameter>\n<parameter=timeout_s>\n5\n</parameter>\n<parameter=quiet>\nTrue\n</parameter>\n<parameter=env>\n{"A": 1}\n</parameter>\n<parameter=other>\n7\n</parameter>\n',
    ),
    calls: [['bash', { command: '42', timeout_s: 5, quiet: true, env: { A: 1 }, other: '7' }]],
  },
  {
    parser: 'qwen3-coder',
    title: 'a value of many lines that contains tags',
    text: xml('<parameter=command>\ncat <<E\n<tool_call>\n\n</function>\nE\n</parameter>\n'),
    calls: [['bash', { command: 'cat <<E\n<tool_call>\n\n</function>\nE' }]],
  },
  {
    parser: 'qwen3-coder',
    title: 'a value that does not match its type stays text',
    text: xml('<parameter=timeout_s>soon</parameter>'),
    calls: [['bash', { timeout_s: 'soon' }]],
  },
  { parser: 'qwen3-coder', title: 'no parameters', text: xml('', 'finish'), calls: [['finish', {}]] },
  {
    parser: 'qwen3-coder',
    title: 'a call that was cut off',
    text: '<tool_call>\n<function=bash>\n<parameter=command>\nls',
    malformed: /not closed/,
  },
  {
    parser: 'qwen3-coder',
    title: 'JSON instead of XML',
    text: '<tool_call>{"name": "bash"}</tool_call>',
    content: '<tool_call>{"name": "bash"}</tool_call>',
    malformed: /has no readable call/,
  },
  { parser: 'qwen3-coder', title: 'a call inside reasoning', text: `<think>${xmlLs}</think>no`, reasoning: xmlLs, content: 'no' },

  { parser: 'llama3-json', title: 'one call', text: '{"name": "bash", "parameters": {"command": "ls"}}', calls: [ls] },
  {
    parser: 'llama3-json',
    title: 'the tag before it',
    text: '<|python_tag|>{"type": "function", "name": "bash", "parameters": {"command": "ls"}}',
    calls: [ls],
  },
  {
    parser: 'llama3-json',
    title: 'text before the tag',
    text: 'So: <|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}',
    content: 'So:',
    calls: [ls],
  },
  {
    parser: 'llama3-json',
    title: 'several calls with semicolons',
    text: '{"name": "bash", "parameters": {"command": "ls"}}; {"name": "bash", "arguments": {"command": "a;}\\"{"}}\n',
    calls: [ls, ['bash', { command: 'a;}"{' }]],
  },
  { parser: 'llama3-json', title: 'an answer in JSON is not a call', text: '{"answer": 42}', content: '{"answer": 42}' },
  { parser: 'llama3-json', title: 'plain text', text: 'It is {42}.', content: 'It is {42}.' },
  {
    parser: 'llama3-json',
    title: 'a call that was cut off',
    text: '{"name": "bash", "parameters": {"comm',
    malformed: /not JSON of the form/,
  },
  { parser: 'llama3-json', title: 'code after the tag', text: '<|python_tag|>search.call(query="x")', malformed: /not JSON of the form/ },
  {
    parser: 'llama3-json',
    title: 'parameters that are not an object',
    text: '{"name": "bash", "parameters": [1]}',
    malformed: /must be a JSON object/,
  },

  {
    parser: 'mistral',
    title: 'a list',
    text: '[TOOL_CALLS] [{"name": "bash", "arguments": {"command": "ls"}, "id": "abcDEF123"}]',
    calls: [ls],
  },
  { parser: 'mistral', title: 'the newer format', text: 'Hm.[TOOL_CALLS]bash[ARGS]{"command": "ls"}', content: 'Hm.', calls: [ls] },
  {
    parser: 'mistral',
    title: 'several in the newer format, one with an id, one without [ARGS]',
    text: '[TOOL_CALLS]bash[CALL_ID]abcDEF123[ARGS]{"command": "echo [TOOL_CALLS]"}[TOOL_CALLS]bash{"command": "ls"}',
    calls: [['bash', { command: 'echo [TOOL_CALLS]' }], ls],
  },
  { parser: 'mistral', title: 'reasoning in its own tags', text: '[THINK]hm[/THINK]42', reasoning: 'hm', content: '42' },
  { parser: 'mistral', title: 'a list that was cut off', text: '[TOOL_CALLS][{"name": "bash", "argu', malformed: /not a JSON list/ },
  { parser: 'mistral', title: 'no arguments', text: '[TOOL_CALLS]bash', content: 'bash', malformed: /not a name, \[ARGS\]/ },
  { parser: 'mistral', title: 'a list of nonsense', text: '[TOOL_CALLS][1]', malformed: /must be a JSON object/ },

  { parser: 'fenced', title: 'one block', text: 'Look:\n```bash\nls\n```\ndone', content: 'Look:\ndone', calls: [ls] },
  { parser: 'fenced', title: 'blocks of other languages are content', text: '```python\nls\n```', content: '```python\nls\n```' },
  {
    parser: 'fenced',
    title: 'a longer fence around a shorter one',
    text: '````sh\ncat <<E\n```bash\n```\nE\n````',
    calls: [['bash', { command: 'cat <<E\n```bash\n```\nE' }]],
  },
  {
    parser: 'fenced',
    title: 'a call inside a block of another language',
    text: '```md\n```bash\nls\n```',
    content: '```md\n```bash\nls\n```',
  },
  { parser: 'fenced', title: 'an unclosed block', text: '```bash\nls', malformed: /not closed with ```/ },
  { parser: 'fenced', title: 'reasoning that the prompt had opened', text: 'hm\n</think>\n```bash\nls\n```', reasoning: 'hm', calls: [ls] },
];

for (const { parser, title, text, content = '', reasoning, calls = [], malformed } of table) {
  test(`${parser}: ${title}`, () => {
    const parsed = findToolParser(parser).parse(text, tools);
    assert.equal(parsed.content, content);
    assert.equal(parsed.reasoning, reasoning);
    assert.deepEqual(
      parsed.calls.map((call) => [call.name, call.arguments]),
      calls,
    );
    assert.equal(parsed.malformed.length, malformed ? 1 : 0, parsed.malformed.join());
    if (malformed) assert.match(parsed.malformed[0] ?? '', malformed);
    for (const { id } of parsed.calls) assert.match(id, /^[a-zA-Z0-9]{9}$/);
  });
}

const named: readonly ToolFormat[] = ['hermes', 'qwen3-coder', 'llama3-json', 'mistral', 'fenced'];

const hostile = [
  '<tool_call>',
  '<tool_call>{',
  '<tool_call></tool_call>',
  '<tool_call>{"</tool_call>',
  '<think>',
  '<think></think>',
  '</think>',
  '<function=',
  '<function=f>',
  '<function=f></function>',
  '<function=f><parameter=x>',
  '<function=f><parameter=x></parameter>',
  '<|python_tag|>',
  '{"name":',
  '{"name":"f"}',
  '[TOOL_CALLS]',
  '[TOOL_CALLS][',
  '[TOOL_CALLS]f[ARGS]{',
  '[TOOL_CALLS]f{}',
  '[THINK]',
  '```bash\n',
  '```',
  '`',
  ' ',
  '\n',
  '{',
  '[',
  '"',
  '\\',
  '\\"',
  '{"a":',
];

for (const name of named) {
  test(`${name}: a megabyte of hostile text is parsed quickly`, () => {
    const { parse } = findToolParser(name);
    for (const piece of hostile) {
      for (const prefix of ['', '{"name": "', '<|python_tag|>{', '[TOOL_CALLS][', '```bash']) {
        const text = prefix + piece.repeat((prefix === '' ? 2 ** 20 : 2 ** 17) / piece.length);
        const before = process.threadCpuUsage();
        const parsed = parse(text, tools);
        const { user, system } = process.threadCpuUsage(before);
        assert.ok((user + system) / 1e3 < 1500, `${JSON.stringify(prefix + piece)} took ${(user + system) / 1e3} ms`);
        assert.ok(parsed.malformed.every((sentence) => sentence.length < 500));
      }
    }
  });

  test(`${name}: no text makes it throw, and what it parses can be serialised`, () => {
    const random = makeRandom(5);
    const pieces = [
      ...hostile,
      'bash',
      '}',
      ']',
      '</tool_call>',
      '</function>',
      '</parameter>',
      '[ARGS]',
      '[/THINK]',
      ': ',
      ';',
      '1',
      '"command"',
      'é\ud800',
    ];
    for (let i = 0; i < 3000; i++) {
      const text = Array.from({ length: 1 + Math.floor(random() * 20) }, () => pieces[Math.floor(random() * pieces.length)]).join('');
      assert.ok(JSON.stringify(findToolParser(name).parse(text, tools)).length > 0, text);
    }
  });

  test(`${name}: a value that is nested too deeply to serialise is not a call`, () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const call = `{"name": "bash", "arguments": {"command": ${deep}}}`;
    for (const text of [
      `<tool_call>${call}</tool_call>`,
      `<tool_call>${deep}</tool_call>`,
      call,
      `[TOOL_CALLS][${call}]`,
      `[TOOL_CALLS]f[ARGS]{"x":${deep}}`,
      xml(`<parameter=env>${deep}</parameter>`),
    ])
      assert.ok(JSON.stringify(findToolParser(name).parse(text, tools)).length > 0);
  });
}
