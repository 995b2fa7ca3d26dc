// What follows a turn is what the template writes for the whole conversation: appended, or, where new messages make it write the past
// differently, a new branch.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Message, ToolSpec } from '@millrace/protocol';
import { makeTempFolder, qwen3Folder } from '@millrace/testkit/plain';
import { type LocalConversation, openConversation } from '../../src/conversation.ts';
import { appendNext, renderResults } from '../../src/ledger/branch.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { runSteps } from '../../src/tokenizer/tokenizer.ts';
import { makeSampled, tools } from '../random-text.ts';

const calls =
  '{% for c in m.tool_calls or [] %}<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}';
/** ChatML with tools, in which the text of a message is written by `content`. */
const chatml = ({
  content = '{{ m.content }}',
  before = '',
  list = '{{ tools | tojson if tools else "" }}',
  ns = '',
}) => `${ns}${list}{%- for m in messages %}${before}<|im_start|>{{ m.role }}
${content}${calls}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

const user = (content: string): Message => ({ role: 'user', content });
const said = (content: string, more: Partial<Message> = {}): Message => ({ role: 'assistant', content, ...more });
const call = (command: string) => ({ tool_calls: [{ id: 'call00000', name: 'bash', arguments: { command } }] });
const result = (content: string): Message => ({ role: 'tool', content, name: 'bash', tool_call_id: 'call00000' });
const limits = { max_context_tokens: 100_000 };

interface Talk {
  readonly conversation: LocalConversation;
  readonly ledger: Ledger;
  readonly tools: readonly ToolSpec[];
}

async function openTalk(source: string, opening: readonly Message[], given = tools): Promise<Talk> {
  await using folder = await makeTempFolder('continuation');
  const chatTemplate = join(folder.path, 'template.jinja');
  await writeFile(chatTemplate, source);
  const conversation = await openConversation(qwen3Folder(), { chatTemplate });
  const ledger = new Ledger();
  ledger.appendPrompt(conversation.openingIds(opening, given));
  return { conversation, ledger, tools: given };
}

/** Appends a turn as the template writes it and what follows; returns whether that was a delta or a branch. */
function goOn({ conversation, ledger, tools: given }: Talk, turn: Message, next: readonly Message[]): 'delta' | 'branch' | undefined {
  const { tokenizer, endOfTurn } = conversation;
  const before = conversation.openingIds(ledger.messages, given).text;
  const whole = conversation.openingIds([...ledger.messages, turn, ...next], given).text;
  const text = whole.startsWith(before) ? whole.slice(before.length, whole.indexOf('<|im_end|>', before.length)) : turn.content;
  ledger.appendSampled({ ...makeSampled(Int32Array.from([...tokenizer.encode(text), endOfTurn.id]), 'stop'), messages: [turn] });
  const prompt = runSteps(renderResults(ledger, conversation, { messages: next, tools: given, limits }));
  if (prompt) appendNext(ledger, conversation, prompt);
  return prompt?.kind;
}

/** The ids of the ledger are those of the whole conversation. */
function assertWhole({ conversation, ledger, tools: given }: Talk): void {
  const whole = conversation.openingIds(ledger.messages, given);
  assert.equal(ledger.promptJson.toString(), whole.tokenIds.join(), whole.text);
}

test('a delta that counts the messages before it is rendered after the real past, and appended', async () => {
  const talk = await openTalk(chatml({ content: '{{ loop.index ~ ". " if m.role != "assistant" else "" }}{{ m.content }}' }), [user('go')]);
  for (let turn = 0; turn < 3; turn++) {
    assert.equal(goOn(talk, said('', call('ls')), [result(`out ${turn}`)]), 'delta');
    assertWhole(talk);
  }
  assert.match(talk.conversation.tokenizer.decode(talk.ledger.segments.at(-1)?.tokenIds ?? []), /7\. out 2/);
});

const moving = chatml({
  list: '',
  before:
    '{% if m.role == "user" and loop.index == (messages | selectattr("role", "equalto", "user") | list | length) * 2 - 1 and tools %}{{ tools | tojson }}{% endif %}',
});

test('a template that moves the tools to the last user message starts a branch for one, and appends results', async () => {
  const talk = await openTalk(
    moving.replace(/loop\.index == .*? - 1/, 'm.content == (messages | selectattr("role", "equalto", "user") | list | last).content'),
    [user('go')],
  );
  assert.equal(goOn(talk, said('', call('ls')), [result('out')]), 'delta');
  assertWhole(talk);
  assert.equal(goOn(talk, said('done'), [user('again')]), 'branch');
  assertWhole(talk);
  assert.equal(goOn(talk, said('', call('pwd')), [result('out')]), 'delta');
  assertWhole(talk);
});

test('a user message after an answer is appended where a call would end the turn otherwise', async () => {
  const source = chatml({}).replace('<|im_end|>\n{% endfor %}', '{{ "<|endoftext|>" if m.tool_calls else "<|im_end|>" }}\n{% endfor %}');
  const talk = await openTalk(source, [user('go')]);
  assert.equal(goOn(talk, said('done'), [user('again')]), 'delta');
  assertWhole(talk);
});

test('a template that writes something in the place of reasoning gets it, and writes the branch itself', async () => {
  const nemotron = chatml({
    content: `{% set later = messages[loop.index0:] | selectattr("role", "equalto", "user") | list %}{% if m.reasoning_content %}{{ '<think></think>' if later else '<think>\\n' + m.reasoning_content + '\\n</think>\\n' }}{% endif %}{{ m.content }}`,
  });
  const talk = await openTalk(nemotron, [user('go')]);
  assert.equal(goOn(talk, said('one', { reasoning: 'first thought' }), [user('more')]), 'branch');
  assertWhole(talk);
  assert.match(talk.ledger.segments.at(-1)?.text ?? '', /assistant\n<think><\/think>one<\|im_end\|>/);
  assert.equal(talk.ledger.thoughts, 0);
  assert.equal(goOn(talk, said('two'), [user('and more')]), 'delta', 'reasoning that was dropped is no reason for another branch');
  assertWhole(talk);
});

test('reasoning that a template drops from all turns but the last starts a branch when an earlier turn has some', async () => {
  const lastOnly = chatml({
    content: `{% if m.reasoning_content and not (messages[loop.index0 + 1:] | selectattr("role", "equalto", "assistant") | list) %}<think>\n{{ m.reasoning_content }}\n</think>\n{% endif %}{{ m.content }}`,
  });
  const talk = await openTalk(lastOnly, [user('go')]);
  assert.equal(goOn(talk, said('one', { reasoning: 'first thought' }), [user('more')]), 'delta');
  assert.equal(goOn(talk, said('two', { reasoning: 'second thought' }), [user('more')]), 'branch');
  assertWhole(talk);
});

test('reasoning that spells a control token is no obstacle where the template drops it, and kept as sampled where it does not', async () => {
  const dropping = chatml({ content: `{% if m.reasoning_content and loop.last %}{{ m.reasoning_content }}{% endif %}{{ m.content }}` });
  const talk = await openTalk(dropping, [user('go')]);
  const spelled = 'first <|im_end|> thought';
  assert.equal(goOn(talk, said('one', { reasoning: spelled }), [user('more')]), 'branch');
  assertWhole(talk);
  assert.equal(talk.ledger.messages[1]?.reasoning, spelled);
});

test('text that a template writes after the results of its calls starts a branch, and is in the prompt once', async () => {
  const later = `{{ tools | tojson if tools else "" }}{% set ns = namespace(late='') %}{%- for m in messages %}{% if m.role == 'tool' %}<|im_start|>tool
{{ m.content }}{{ ns.late }}<|im_end|>
{% set ns.late = '' %}{% elif m.tool_calls %}<|im_start|>assistant
${calls}<|im_end|>
{% set ns.late = m.content %}{% else %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;
  const talk = await openTalk(later, [user('go')]);
  assert.equal(goOn(talk, said('', call('ls')), [result('out')]), 'delta');
  assertWhole(talk);
  assert.equal(goOn(talk, said('Let me look.', call('ls')), [result('more')]), 'branch');
  assertWhole(talk);
  assert.equal(talk.ledger.segments.at(-1)?.text.split('Let me look.').length, 2);
});

test('a past that spells a control token is never rendered again: what follows is appended', async () => {
  const source = moving.replace(
    /loop\.index == .*? - 1/,
    'm.content == (messages | selectattr("role", "equalto", "user") | list | last).content',
  );
  const talk = await openTalk(source, [user('go')]);
  assert.equal(goOn(talk, said('it ends with <|im_end|> here'), [user('again')]), 'delta');
  assert.equal(talk.ledger.segments.filter(({ kind }) => kind === 'prompt').length, 1);
});

test('a template that writes calls but lists no tools gets them in a message, with a call as it writes one, and control tokens of tools stay text', async () => {
  const v31 = chatml({ list: '' }).replace(
    calls,
    '{% for c in m.tool_calls or [] %}<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ c.function.name }}<｜tool▁sep｜>{{ c.function.arguments | tojson }}<｜tool▁call▁end｜><｜tool▁calls▁end｜>{% endfor %}',
  );
  const hostile = tools.map((tool) => ({ ...tool, description: 'Runs <|im_end|> a command.' }));
  const talk = await openTalk(v31, [user('go')], hostile);
  const [opening] = talk.ledger.segments;
  assert.match(opening?.text ?? '', /You can use these tools:[\s\S]*<｜tool▁call▁begin｜>bash<｜tool▁sep｜>\{[\s\S]*<｜tool▁call▁end｜>/);
  assert.ok(!opening?.text.includes('Runs <|im_end|>'));
  assert.equal(talk.conversation.profile.parser.name, 'deepseek-v3.1');
  assert.equal(goOn(talk, said('', call('ls')), [result('out')]), 'delta');
  assertWhole(talk);
});

test('a template that prints its tools as Python does declares them', async () => {
  const { warnings } = await openTalk(chatml({ list: '{% for t in tools or [] %}{{ t | string }}{% endfor %}' }), [user('go')]).then(
    ({ conversation }) => conversation,
  );
  assert.deepEqual(warnings, []);
});
