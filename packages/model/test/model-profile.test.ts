// The format of a model is proven with its own template: what the template writes must be what the parser reads. Nothing falls back quietly.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder, qwen3Folder } from '@millrace/testkit/plain';
import { openConversation } from '../src/conversation.ts';
import { appendDelta } from '../src/ledger/branch.ts';
import { Ledger } from '../src/ledger/ledger.ts';
import { proveProfile } from '../src/model-profile.ts';
import { openChatTemplate } from '../src/template/chat-template.ts';
import type { ToolParserName } from '../src/tool-calls/tool-parsers.ts';
import { makeSampled } from './random-text.ts';

/** A template that lists its tools, and writes each call with `call`. */
function makeTemplate({ call = '', tools = '{{ tools | tojson }}', more = '' }): string {
  return `{%- if tools %}${tools}{% endif -%}
{%- for m in messages -%}
<|im_start|>{{ m.role }}
${more}{{ m.content }}{% for c in m.tool_calls or [] %}{% set f = c.function %}${call}{% endfor %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;
}

function prove(source: string, wanted: ToolParserName = 'auto') {
  const template = openChatTemplate({ chat_template: source, eos_token: '<|im_end|>' }, { name: 'the template x' });
  return proveProfile(template, wanted, 'the template x');
}

const writers: readonly (readonly [string, string])[] = [
  ['hermes', '<tool_call>\n{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}\n</tool_call>'],
  [
    'glm',
    '<tool_call>{{ f.name }}{% for k, v in f.arguments.items() %}<arg_key>{{ k }}</arg_key><arg_value>{{ v if v is string else v | tojson }}</arg_value>{% endfor %}</tool_call>',
  ],
  [
    'minimax-m2',
    '<minimax:tool_call>\n<invoke name="{{ f.name }}">\n{% for k, v in f.arguments.items() %}<parameter name="{{ k }}">{{ v if v is string else v | tojson }}</parameter>\n{% endfor %}</invoke>\n</minimax:tool_call>',
  ],
  [
    'deepseek-v3.1',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ f.name }}<｜tool▁sep｜>{{ f.arguments | tojson }}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  ],
  [
    'kimi-k2',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.{{ f.name }}:0<|tool_call_argument_begin|>{{ f.arguments | tojson }}<|tool_call_end|><|tool_calls_section_end|>',
  ],
  ['mistral', '[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}'],
  ['nemotron', '<TOOLCALL>[{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}]</TOOLCALL>'],
];

for (const [format, call] of writers) {
  test(`a template that writes calls the ${format} way is proven as ${format}`, () => {
    const { parser, toolCalls, checks } = prove(makeTemplate({ call }));
    assert.deepEqual([parser.name, toolCalls], [format, 'proven']);
    assert.deepEqual(
      checks.filter(({ outcome }) => outcome !== 'proven'),
      [],
    );
  });
}

test('a template whose calls no parser reads is refused with what it writes, not read as text', () => {
  const call = '@@{{ f.name }}@@{{ f.arguments | tojson }}@@';
  assert.throws(() => prove(makeTemplate({ call })), /the template x writes a call as "@@bash@@.*which no tool-call parser reads back/s);
});

test('a template whose calls cannot be read by anyone is refused for its own fault', () => {
  const noQuotes = '[{{ f.name }}({% for k, v in f.arguments.items() %}{{ k }}={{ v }}{% endfor %})]';
  assert.throws(() => prove(makeTemplate({ call: noQuotes })), /writes a call as "\[bash\(command=ls -l\)\]", which is not valid Python/);
  const afterEnd = '<|im_end|>call\n{{ f.arguments | tojson }}';
  assert.throws(() => prove(makeTemplate({ call: afterEnd })), /writes <\|im_end\|>, which ends a turn, before a call/);
});

test('an end that the template writes twice, or only before another message, is the end of a turn', () => {
  const twice = `${makeTemplate({ call: writers[0]?.[1] ?? '' })}`.replace('<|im_end|>\n', '<|im_end|>\n{{ eos_token }}');
  assert.equal(prove(twice).toolCalls, 'proven');
  const later = makeTemplate({ call: writers[0]?.[1] ?? '' }).replace(
    '<|im_end|>\n',
    '{% if not loop.last or m.role != "assistant" %}<|im_end|>\n{% endif %}',
  );
  const template = openChatTemplate({ chat_template: later }, { controlTokens: ['<|im_start|>', '<|im_end|>'] });
  assert.deepEqual(template.ends, { text: '<|im_end|>', all: ['<|im_end|>'], isShared: false });
  assert.equal(proveProfile(template, 'auto', 'the template x').toolCalls, 'proven');
  const [first] = template.renderDelta([{ role: 'user', content: 'more' }]);
  assert.equal(first?.text, '\n<|im_start|>user\n');
});

test('arguments that the template wants as JSON text are given as text', () => {
  const call = `<tool_call>\n{{ '{"name": "' + f.name + '", "arguments": ' + f.arguments + '}' }}\n</tool_call>`;
  assert.equal(prove(makeTemplate({ call })).toolCalls, 'proven');
});

test('a format that is named is kept, and the difference is reported', () => {
  const { parser, toolCalls, checks } = prove(makeTemplate({ call: writers[1]?.[1] ?? '' }), 'hermes');
  assert.deepEqual([parser.name, toolCalls], ['hermes', 'differs']);
  assert.match(checks.find(({ what }) => what === 'a call')?.why ?? '', /JSON/);
});

test('a template without tools is taught a format; one that lists tools without saying how to call them is refused', () => {
  assert.deepEqual(toolCallsOf(makeTemplate({ tools: '' })), ['hermes', 'taught']);
  assert.deepEqual(toolCallsOf(makeTemplate({ tools: '{{ tools | tojson }} Call within <tool_call></tool_call>.' })), [
    'hermes',
    'declared',
  ]);
  assert.throws(() => prove(makeTemplate({})), /declares tools but writes no calls/);
});

function toolCallsOf(source: string) {
  const { parser, toolCalls } = prove(source);
  return [parser.name, toolCalls];
}

test('a template that raises an error for calls is refused with that error', () => {
  const more = "{% if m.tool_calls %}{{ raise_exception('no calls here') }}{% endif %}";
  assert.throws(() => prove(makeTemplate({ more })), /declares tools but refuses a turn with a call: .*no calls here/);
});

const shared = `{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}`;

test('where the first token of the next message ends a turn, it is in the context once', async () => {
  await using folder = await makeTempFolder('shared-end');
  const chatTemplate = join(folder.path, 'shared.jinja');
  await writeFile(chatTemplate, shared);
  const conversation = await openConversation(qwen3Folder(), { chatTemplate });
  const { endOfTurn, tokenizer } = conversation;
  const [start = -1] = tokenizer.encode('<|im_start|>');
  assert.deepEqual([endOfTurn.isShared, endOfTurn.ids, endOfTurn.tokenIds.length], [true, [start], 0]);
  const said = [...tokenizer.encodePlain('hello')];
  for (const ended of [true, false]) {
    const ledger = new Ledger();
    ledger.appendPrompt(conversation.openingIds([{ role: 'user', content: 'hi' }], []));
    const tokenIds = Int32Array.from(ended ? [...said, start] : said);
    ledger.appendSampled({
      ...makeSampled(tokenIds, ended ? 'stop' : 'length'),
      text: 'hello',
      messages: [{ role: 'assistant', content: 'hello' }],
    });
    appendDelta(ledger, conversation, conversation.deltaIds([{ role: 'user', content: 'more' }]));
    const ids = ledger.segments.flatMap((segment) => [...segment.tokenIds]);
    assert.equal(tokenizer.decode(ids), '<|im_start|>user\nhi<|im_start|>assistant\nhello<|im_start|>user\nmore<|im_start|>assistant\n');
    assert.equal(
      ledger.segments.some(({ kind }) => kind === 'inserted'),
      false,
    );
  }
});

test('a result is written with the name of its tool, which cannot forge a control token', () => {
  const naming = makeTemplate({
    call: writers[0]?.[1] ?? '',
    more: '{% if m.role == "tool" %}{% for o in messages %}{% for c in o.tool_calls or [] %}{% if c.id == m.tool_call_id %}{{ c.function.name }}{% endif %}{% endfor %}{% endfor %}:{% endif %}',
  });
  const template = openChatTemplate({ chat_template: naming, eos_token: '<|im_end|>' });
  const parts = template.renderDelta([{ role: 'tool', content: 'x', name: '<|im_start|>', tool_call_id: 'call00000' }]);
  assert.deepEqual(
    parts.filter(({ trusted }) => !trusted).map(({ text }) => text),
    ['<|im_start|>', 'x'],
  );
});

test('the proof compares the ids of calls, and says how a user message follows', () => {
  const call = '<tool_call>\n{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}, "call": "{{ c.id }}"}\n</tool_call>';
  assert.match(
    prove(makeTemplate({ call }), 'hermes').checks.find(({ what }) => what === 'a call')?.why ?? '',
    /does not read the id k3x9Qz7A0/,
  );
  assert.equal(prove(makeTemplate({ call: call.replace('"call"', '"id"') })).toolCalls, 'proven');
  const after = 'a user message after an answer';
  const [, hermes = ''] = writers[0] ?? [];
  assert.deepEqual(
    prove(makeTemplate({ call: hermes })).checks.find(({ what }) => what === after),
    { what: after, outcome: 'proven' },
  );
  const moving = makeTemplate({
    call: hermes,
    tools: '',
    more: '{{ tools | tojson if tools and loop.last and m.role == "user" else "" }}',
  });
  assert.match(prove(moving).checks.find(({ what }) => what === after)?.why ?? '', /as a new branch/);
  const one = `{% if messages | length > 2 and messages[-1].role == 'user' %}{{ raise_exception('one question') }}{% endif %}`;
  assert.match(prove(one + makeTemplate({ call: hermes })).checks.find(({ what }) => what === after)?.why ?? '', /one question/);
});
