// Token-exactness for each model family with its real files: with any text from users and tools and with cut turns, each prompt starts
// with the previous one. If the template is append-only, the joined ids are those of the whole conversation rendered at once.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import type { Message, ToolSpec } from '@millrace/protocol';
import { type ModelFamily, makeRandom, modelFamilies, modelFolder } from '@millrace/testkit/plain';
import { openConversation } from '../src/conversation.ts';
import { JinjaTemplate } from '../src/jinja/jinja.ts';
import { toJsonText } from '../src/jinja/values/python-text.ts';
import { renderResults } from '../src/ledger/branch.ts';
import { Ledger } from '../src/ledger/ledger.ts';
import { runSteps } from '../src/tokenizer/tokenizer.ts';
import { toCallId } from '../src/tool-calls/tool-calls.ts';
import { alphabet, appendRandomTurn, makeSampled, makeText, tools } from './random-text.ts';

interface Turn {
  readonly message: Message;
  /** What the policy sampled: exactly what the template would write for it. */
  readonly text: string;
}

interface Family {
  readonly endOfTurn: string;
  /** When the template is append-only. */
  readonly condition: string;
  readonly hasSystem: boolean;
  readonly resultRoles: readonly ('tool' | 'user')[];
  makeTurn(random: () => number): Turn;
}

const say = (content: string): Turn => ({ message: { role: 'assistant', content }, text: content });
const makeCall = (command: string) => ({ id: toCallId(0), name: 'bash', arguments: { command } });
const hermesTurn = (random: () => number): Turn => {
  const content = `x${makeText(random, alphabet)}`;
  if (random() < 0.5) return say(content);
  const call = makeCall(makeText(random, alphabet));
  const text = `${content}\n<tool_call>\n{"name": "bash", "arguments": {"command": ${toJsonText(call.arguments.command)}}}\n</tool_call>`;
  return { message: { role: 'assistant', content, tool_calls: [call] }, text };
};

const families: Readonly<Record<ModelFamily, Family>> = {
  qwen2_5: {
    endOfTurn: '<|im_end|>',
    condition: 'a turn is text and calls as the template writes them',
    hasSystem: true,
    resultRoles: ['tool', 'user'],
    makeTurn: hermesTurn,
  },
  qwen3: {
    endOfTurn: '<|im_end|>',
    condition: 'no turn has reasoning or starts with a newline, and calls are as the template writes them',
    hasSystem: true,
    resultRoles: ['tool', 'user'],
    makeTurn: hermesTurn,
  },
  llama3_2: {
    endOfTurn: '<|eot_id|>',
    condition: 'a turn is text without space around it, or one call as the template writes it',
    hasSystem: true,
    resultRoles: ['tool', 'user'],
    makeTurn(random) {
      if (random() < 0.5) return say(`x${makeText(random, alphabet)}x`);
      const call = makeCall(makeText(random, alphabet));
      const text = `{"name": "bash", "parameters": {"command": ${toJsonText(call.arguments.command)}}}`;
      return { message: { role: 'assistant', content: '', tool_calls: [call] }, text };
    },
  },
  mistral_nemo: {
    endOfTurn: '</s>',
    condition: 'there is no system message, every turn is calls as the template writes them, and only tools reply',
    hasSystem: false,
    resultRoles: ['tool'],
    makeTurn(random) {
      const call = makeCall(makeText(random, alphabet));
      const text = `[TOOL_CALLS][{"name": "bash", "arguments": {"command": ${toJsonText(call.arguments.command)}}, "id": "${call.id}"}]`;
      return { message: { role: 'assistant', content: '', tool_calls: [call] }, text };
    },
  },
};

for (const name of modelFamilies) {
  const family = families[name];
  const kwargs = { date_string: '26 Jul 2024' };
  const conversation = await openConversation(modelFolder(name), { toolParser: 'auto', chatTemplateKwargs: kwargs });
  const { tokenizer, endOfTurn } = conversation;
  const { chat_template, bos_token } = JSON.parse(await readFile(join(modelFolder(name), 'tokenizer_config.json'), 'utf8'));
  const whole = new JinjaTemplate(chat_template);
  const renderWhole = (messages: readonly Message[], withTools: readonly ToolSpec[]) =>
    whole.render({
      ...kwargs,
      messages: messages.map(({ tool_calls, ...rest }) => ({
        ...rest,
        ...(tool_calls ? { tool_calls: tool_calls.map(({ id, ...call }) => ({ id, type: 'function', function: call })) } : {}),
      })),
      ...(withTools.length > 0 ? { tools: withTools.map((tool) => ({ type: 'function', function: tool })) } : {}),
      add_generation_prompt: true,
      bos_token: bos_token ?? '',
      eos_token: family.endOfTurn,
    });

  test(`${name}: the end of a turn and the parser are found from the template`, async () => {
    assert.equal(endOfTurn.text, family.endOfTurn);
    const call = families[name].makeTurn(() => 0.7);
    assert.equal((await conversation.readTurn(call.text, tools)).calls.length, 1);
  });

  test(`${name}: an opening has the ids of the whole rendering`, () => {
    const random = makeRandom(11);
    for (let i = 0; i < 40; i++) {
      const messages: Message[] = [
        { role: 'system', content: makeText(random, alphabet) },
        { role: 'user', content: makeText(random, alphabet) },
      ];
      const withTools = i % 2 === 0 ? tools : [];
      const opening = conversation.openingIds(messages, withTools);
      assert.equal(opening.text, renderWhole(messages, withTools));
      assert.deepEqual(opening.tokenIds, tokenizer.encode(opening.text), JSON.stringify(messages));
    }
  });

  test(`${name}: next_prompt[:len(previous)] == previous, with unicode, cut turns and special tokens in tool output`, () => {
    const random = makeRandom(12);
    const controls = tokenizer.controlTokens.slice(0, 40);
    const controlIds = new Set(tokenizer.controlTokens.map((text) => tokenizer.idOf(text)));
    const count = (ids: Int32Array) => ids.filter((id) => controlIds.has(id)).length;
    for (let i = 0; i < 20; i++) {
      const ledger = new Ledger();
      ledger.appendPrompt(conversation.openingIds([{ role: 'user', content: makeText(random, [...alphabet, ...controls]) }], tools));
      for (let turn = 0; turn < 5; turn++) {
        const before = ledger.promptJson;
        const answers = appendRandomTurn(ledger, conversation, { random, pieces: [...alphabet, ...controls] });
        const past = { messages: ledger.messages, tools };
        const delta = conversation.deltaIds(answers, past);
        ledger.appendObservation(delta);
        assert.ok(ledger.promptJson.subarray(0, before.length).equals(before));
        const harmless = conversation.deltaIds(
          answers.map((answer) => ({ ...answer, content: 'x' })),
          past,
        );
        assert.equal(count(delta.tokenIds), count(harmless.tokenIds), 'a tool forged a control token');
      }
    }
  });

  test(`${name}: the joined ids are those of the whole rendering if ${family.condition}`, () => {
    const random = makeRandom(13);
    for (let i = 0; i < 20; i++) {
      const system: Message[] = family.hasSystem && random() < 0.5 ? [{ role: 'system', content: makeText(random, alphabet) }] : [];
      const messages: Message[] = [...system, { role: 'user', content: makeText(random, alphabet) }];
      const ledger = new Ledger();
      ledger.appendPrompt(conversation.openingIds(messages, tools));
      for (let turn = 0; turn < 4; turn++) {
        const { message, text } = family.makeTurn(random);
        ledger.appendSampled(makeSampled(Int32Array.from([...tokenizer.encode(text), endOfTurn.id]), 'stop'));
        const role = family.resultRoles[Math.floor(random() * family.resultRoles.length)] ?? 'tool';
        const answers: Message[] = Array.from({ length: role === 'tool' ? 1 + Math.floor(random() * 2) : 1 }, () => ({
          role,
          content: makeText(random, alphabet),
          ...(role === 'tool' ? { tool_call_id: toCallId(0) } : {}),
        }));
        ledger.appendObservation(conversation.deltaIds(answers, { messages: [...messages, message], tools }));
        messages.push(message, ...answers);
      }
      assert.equal(ledger.promptJson.toString(), tokenizer.encode(renderWhole(messages, tools)).join());
    }
  });

  test(`${name}: tokenising in steps gives the ids of the library`, async () => {
    const [file, config] = await Promise.all(
      ['tokenizer.json', 'tokenizer_config.json'].map(async (part) => JSON.parse(await readFile(join(modelFolder(name), part), 'utf8'))),
    );
    const library = new LibraryTokenizer(file, config);
    const random = makeRandom(14);
    for (let i = 0; i < 60; i++) {
      const text = makeText(random, [...alphabet, 'a'.repeat(300), '-'.repeat(200), ' '.repeat(150), '日'.repeat(90), '0123456789'], 60);
      const ids = library.encode(text, { add_special_tokens: false }).ids;
      assert.deepEqual([...tokenizer.encodeParts([{ text, trusted: false }])], ids, JSON.stringify(text));
    }
  });

  test(`${name}: a long text is tokenised in many steps`, () => {
    for (const text of ['a'.repeat(32_768), '7 '.repeat(16_384)]) {
      let steps = 0;
      for (const _ of tokenizer.encodeSteps([{ text, trusted: false }])) steps += 1;
      assert.ok(steps > 5, `${steps} steps`);
    }
  });

  if (!family.resultRoles.includes('user'))
    test(`${name}: a user message in the middle of a conversation, before which it writes the tools again, starts a branch`, () => {
      const ledger = new Ledger();
      ledger.appendPrompt(conversation.openingIds([{ role: 'user', content: 'go' }], tools));
      const said: Message = { role: 'assistant', content: 'done' };
      const sampled = makeSampled(Int32Array.from([...tokenizer.encode('done'), endOfTurn.id]), 'stop');
      ledger.appendSampled({ ...sampled, messages: [said] });
      const limits = { max_context_tokens: 100_000 };
      const next = runSteps(renderResults(ledger, conversation, { messages: [{ role: 'user', content: 'go on' }], tools, limits }));
      assert.equal(next?.kind, 'branch');
      assert.equal(next?.rendered.text, renderWhole(next.rendered.messages, tools));
    });
}
