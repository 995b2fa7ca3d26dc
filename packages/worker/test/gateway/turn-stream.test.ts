// What a client sees of a turn while it is sampled, and that no text of the policy makes showing it expensive.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReplyEvent } from '@millrace/gateway';
import { TurnStream } from '../../src/gateway/turn-stream.ts';

interface StreamBed {
  readonly stream: TurnStream;
  readonly events: ReplyEvent[];
  /** How many characters the parser was given in all, and how many tokens were decoded. */
  readonly cost: { parsed: number; decoded: number };
}

/** Each token is a character. */
function openStream(broken: ReadonlySet<number> = new Set()): StreamBed {
  const events: ReplyEvent[] = [];
  const cost = { parsed: 0, decoded: 0 };
  const stream = new TurnStream({
    format: 'hermes',
    reasoning: { open: '<think>', close: '</think>' },
    isThinking: false,
    isHeld: false,
    decode: async (ids) => {
      cost.decoded += ids.length;
      return [...ids].map((id) => (broken.has(id) ? '\ufffd' : String.fromCodePoint(id))).join('');
    },
    parse: (text) => {
      cost.parsed += text.length;
      const [, json = ''] = /^<tool_call>(\{"name":"[a-z]+","arguments":\{\}\})<\/tool_call>$/.exec(text) ?? [];
      if (json === '') return { content: text, calls: [], malformed: [] };
      return { content: '', calls: [{ id: '', ...JSON.parse(json) }], malformed: [] };
    },
    makeCallId: () => 'call_1',
    emit: (event) => void events.push(event),
  });
  return { stream, events, cost };
}

const push = (stream: TurnStream, text: string) => {
  for (const letter of text) stream.push(Int32Array.of(letter.codePointAt(0) ?? 0));
};

test('text, reasoning and a whole call are shown before the turn has ended', async () => {
  const { stream, events } = openStream();
  push(stream, '<think>hm</think>Let me look.<tool_call>{"name":"bash","arguments":{}}</tool_call>');
  while (!events.some(({ kind }) => kind === 'arguments')) await new Promise(setImmediate);
  const shown = (wanted: string) => events.flatMap((event) => (event.kind === wanted && 'text' in event ? [event.text] : [])).join('');
  assert.equal(shown('reasoning'), 'hm');
  assert.equal(shown('text'), 'Let me look.');
  assert.deepEqual(
    events.find(({ kind }) => kind === 'call'),
    { kind: 'call', id: 'call_1', name: 'bash' },
  );
});

test('a call with thousands of closing marks is parsed a few times, and shown at the end', async () => {
  const { stream, cost } = openStream();
  const text = `<tool_call>${'x</tool_call>'.repeat(3000)}`;
  push(stream, text);
  const shown = await stream.finish({ content: text });
  assert.equal(shown.content, text);
  assert.ok(cost.parsed < 4 * text.length, `${cost.parsed} characters were parsed`);
});

test('thousands of tokens that are no character are decoded a few times each', async () => {
  const { stream, cost } = openStream(new Set([7]));
  for (let at = 0; at < 5000; at += 1) stream.push(Int32Array.of(7));
  await stream.finish({ content: '\ufffd'.repeat(5000) });
  assert.ok(cost.decoded < 40 * 5000, `${cost.decoded} tokens were decoded`);
});
