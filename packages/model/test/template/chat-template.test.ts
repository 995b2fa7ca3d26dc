// A template is used only if its deltas do not depend on the past; one that cannot be continued exactly is refused with its name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openChatTemplate } from '../../src/template/chat-template.ts';
import { findToolParser } from '../../src/tool-calls/tool-parsers.ts';

const chatml = `{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}`;
const open = (chat_template: unknown) => openChatTemplate({ chat_template, eos_token: '<|im_end|>' }, { name: 'the template x' });
const joined = (parts: readonly { text: string }[]) => parts.map(({ text }) => text).join('');

test('a delta is what follows the end of the assistant turn', () => {
  const template = open(chatml);
  assert.equal(
    joined(template.renderDelta([{ role: 'user', content: 'more' }])),
    '\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n',
  );
});

test('text of users and tools is untrusted, all other text is trusted', () => {
  const parts = open(chatml).renderOpening(
    [
      { role: 'system', content: 'rules' },
      { role: 'user', content: '<|im_end|>' },
    ],
    [],
  );
  assert.deepEqual(
    parts.filter(({ trusted }) => !trusted),
    [{ text: '<|im_end|>', trusted: false }],
  );
});

test('known difference: a schema that came as JSON loses 1.0 and the order of integer-like keys; calls of the model keep both', () => {
  const template = open(`{{ tools | tojson if tools else '' }}${chatml}`);
  const schema = '{"type": "object", "properties": {"10": {"default": 1.0}, "2": {}}}';
  const render = (parameters: Record<string, unknown>) =>
    joined(template.renderOpening([{ role: 'user', content: 'x' }], [{ name: 'f', description: '', parameters }]));
  assert.match(render(JSON.parse(schema)), /"properties": \{"2": \{\}, "10": \{"default": 1\}\}/);
  const [remembered] = findToolParser('hermes').parse(`<tool_call>{"name": "f", "arguments": ${schema}}</tool_call>`).calls;
  assert.match(render(remembered?.arguments ?? {}), /"properties": \{"10": \{"default": 1\.0\}, "2": \{\}\}/);
});

test('contents are trimmed if the template trims them', () => {
  const trimming = chatml.replace('m.content', 'm.content | trim');
  const content = '\n  a b \n';
  assert.match(joined(open(trimming).renderDelta([{ role: 'tool', content }])), /tool\na b<\|im_end\|>/);
  assert.match(joined(open(chatml).renderDelta([{ role: 'tool', content }])), /tool\n\n {2}a b \n<\|im_end\|>/);
});

test('content that looks like a placeholder is content', () => {
  const content = '\u{e000}0\u{e001} and \u2003\u{e000}1\u{e001}\u2003';
  const text = joined(open(chatml).renderOpening([{ role: 'user', content }], []));
  assert.ok(text.includes(`user\n${content}<|im_end|>`));
});

test('the name of a tool is untrusted too, because the policy may invent one', () => {
  const naming = chatml.replace('m.role +', "m.role + (m.name if m.name else '') +");
  const parts = open(naming).renderDelta([{ role: 'tool', content: 'x', name: '<|im_start|>' }]);
  assert.deepEqual(
    parts.filter(({ text }) => text === '<|im_start|>'),
    [{ text: '<|im_start|>', trusted: false }],
  );
});

test('a template is chosen from a list by name', () => {
  assert.equal(open([{ name: 'default', template: chatml }]).ends.text, '<|im_end|>');
  assert.throws(() => open([{ name: 'rag', template: chatml }]), /the template x .*neither/);
});

const gemma = `{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}`;

test('a template with its own end of turn, without system message and tools, and with strictly alternating roles, is used for what it supports', () => {
  const controlTokens = ['<bos>', '<eos>', '<start_of_turn>', '<end_of_turn>'];
  const template = openChatTemplate({ chat_template: gemma, bos_token: '<bos>', eos_token: '<eos>' }, { name: 'gemma', controlTokens });
  assert.equal(template.ends.text, '<end_of_turn>');
  assert.equal(template.resultRole, 'user');
  const answers = [
    { role: 'tool', content: 'one ' },
    { role: 'tool', content: 'two\n' },
  ] as const;
  assert.equal(joined(template.renderDelta(answers)), '\n<start_of_turn>user\none \n\ntwo<end_of_turn>\n<start_of_turn>model\n');
  assert.throws(
    () =>
      template.renderOpening(
        [
          { role: 'system', content: 'rules' },
          { role: 'user', content: 'q' },
        ],
        [],
      ),
    /gemma .*System role not supported/,
  );
});

test('a template that drops tool results gets them as a user message', () => {
  const dropping = chatml
    .replace("{{ '<|im_start|>' +", "{% if m.role != 'tool' %}{{ '<|im_start|>' +")
    .replace("'<|im_end|>\\n' }}", "'<|im_end|>\\n' }}{% endif %}");
  const template = open(dropping);
  assert.equal(template.resultRole, 'user');
  assert.match(joined(template.renderDelta([{ role: 'tool', content: 'out' }])), /user\nout<\|im_end\|>/);
});

test('contents are written as JSON if the template writes JSON', () => {
  const template = open(chatml.replace('m.content', 'm.content | tojson'));
  const content = ' "a"\n\\ é <|im_end|>';
  const parts = template.renderDelta([{ role: 'tool', content }]);
  assert.deepEqual(
    parts.filter(({ trusted }) => !trusted),
    [{ text: JSON.stringify(content).slice(1, -1), trusted: false }],
  );
  assert.ok(joined(parts).includes(`tool\n${JSON.stringify(content)}<|im_end|>`));
});

test('variables from the configuration reach the template, but cannot replace the conversation', () => {
  const thinking = chatml.replace("assistant\\n'", "assistant\\n' + ('<think>\\n' if enable_thinking else '')");
  const openWith = (kwargs: Record<string, unknown>) => openChatTemplate({ chat_template: thinking, eos_token: '<|im_end|>' }, { kwargs });
  const delta = (kwargs: Record<string, unknown>) => joined(openWith(kwargs).renderDelta([{ role: 'tool', content: 'x' }]));
  assert.match(delta({ enable_thinking: true }), /assistant\n<think>\n$/);
  assert.match(delta({ enable_thinking: false, messages: [] }), /tool\nx<\|im_end\|>\n<\|im_start\|>assistant\n$/);
});

test('the number of cached shapes is bounded, and every shape is rendered correctly', () => {
  const template = open(chatml.replace('m.role +', "m.role + (m.tool_call_id if m.tool_call_id else '') +"));
  for (let i = 0; i < 600; i++)
    assert.match(joined(template.renderDelta([{ role: 'tool', content: 'x', tool_call_id: `id${i}` }])), new RegExp(`toolid${i}\n`));
});

const refused: readonly [string, unknown, RegExp][] = [
  ['no template', undefined, /the template x cannot be used/],
  ['a turn without its end', chatml.replaceAll('<|im_end|>', '</s>'), /the template x .*does not end with a control token/],
  ['what is no Jinja', '{% if %}', /the template x/],
  ['a template that throws', `{{ raise_exception('no tools here') }}`, /the template x .*no tools here/],
];

for (const [what, template, message] of refused) {
  test(`${what} is refused with its name`, () => {
    assert.throws(() => open(template), message);
  });
}

test('a date in a template stands still, in UTC, and is another one for another rollout', () => {
  const template = open(`{{ strftime_now('%Y-%m-%d %H:%M:%S %j') }}${chatml}`);
  const opening = (one: typeof template) => joined(one.renderOpening([{ role: 'user', content: 'x' }], [])).split('<')[0];
  const first = template.at(Date.parse('2024-02-29T23:59:58Z'));
  const second = template.at(Date.parse('2025-12-31'));
  assert.deepEqual(
    [opening(first), opening(second), opening(first)],
    ['2024-02-29 23:59:58 060', '2025-12-31 00:00:00 365', '2024-02-29 23:59:58 060'],
  );
  assert.equal(opening(template), opening(template), 'that of its opening');
});

test('a date in what follows a turn is that of the rollout too', () => {
  const dated = chatml.replace("'<|im_start|>assistant\\n'", "'<|im_start|>assistant at ' + strftime_now('%H:%M:%S') + '\\n'");
  assert.notEqual(dated, chatml);
  const template = open(dated);
  const delta = (date: string) => joined(template.at(Date.parse(date)).renderDelta([{ role: 'user', content: 'x' }]));
  assert.match(delta('2024-02-29T01:02:03Z'), /assistant at 01:02:03\n$/);
  assert.match(delta('2024-02-29T01:02:04Z'), /assistant at 01:02:04\n$/);
  assert.match(delta('2024-02-29T01:02:03Z'), /assistant at 01:02:03\n$/);
});

test('a template without a date is the same at any time', () => {
  const template = open(chatml);
  assert.equal(template.at(0), template);
});
