// A template is used only when its deltas do not depend on the past; those that cannot be continued exactly are refused by name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openChatTemplate } from '../../src/trajectory/chat-template.ts';

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

test('what users and tools wrote is untrusted, the rest is not', () => {
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

test('where a template trims, contents are trimmed', () => {
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

test('the name of a tool, which a policy may have made up, is untrusted too', () => {
  const naming = chatml.replace('m.role +', "m.role + (m.name if m.name else '') +");
  const parts = open(naming).renderDelta([{ role: 'tool', content: 'x', name: '<|im_start|>' }]);
  assert.deepEqual(
    parts.filter(({ text }) => text === '<|im_start|>'),
    [{ text: '<|im_start|>', trusted: false }],
  );
});

test('a list of templates is chosen from by name', () => {
  assert.equal(open([{ name: 'default', template: chatml }]).endOfTurn, '<|im_end|>');
  assert.throws(() => open([{ name: 'rag', template: chatml }]), /the template x .*neither/);
});

const refused: readonly [string, unknown, RegExp][] = [
  ['no template', undefined, /the template x cannot be used/],
  [
    'a delta that counts the messages before it',
    chatml.replace('m.role +', 'm.role + (messages | length | string) +'),
    /the template x cannot be continued exactly/,
  ],
  [
    'a delta that repeats the tools',
    chatml.replace('m.content', "m.content + ('T' if tools else '')"),
    /the template x cannot be continued exactly/,
  ],
  ['a turn without its end', chatml.replaceAll('<|im_end|>', '</s>'), /the template x .*not ended with a control token/],
  ['a template that throws', `{{ raise_exception('no tools here') }}`, /the template x .*no tools here/],
];

for (const [what, template, message] of refused) {
  test(`${what} is refused by name`, () => {
    assert.throws(() => open(template), message);
  });
}
