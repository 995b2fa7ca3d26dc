// What a client sees of a turn while it is sampled, in every format, and that no text of the policy makes showing it expensive.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRandom } from '@millrace/testkit/plain';
import { thinkTags } from '../../src/tool-calls/reasoning.ts';
import { type ToolCallParser, type ToolFormat, toolFormats } from '../../src/tool-calls/tool-calls.ts';
import { findToolParser } from '../../src/tool-calls/tool-parsers.ts';
import { callMarks, thoughtsOf } from '../../src/turn-stream/call-marks.ts';
import { isShownAs, type TurnEvent, TurnStream } from '../../src/turn-stream/turn-stream.ts';
import { rows, tools } from '../tool-calls/format-rows.ts';

interface StreamBed {
  readonly stream: TurnStream;
  readonly events: TurnEvent[];
  /** How many characters the parser was given in all, and how many tokens were decoded. */
  readonly cost: { parsed: number; decoded: number };
}

/** Each token is a character. */
function openStream(parser: ToolCallParser, { broken = -1, promptEnd = '' } = {}): StreamBed {
  const events: TurnEvent[] = [];
  const cost = { parsed: 0, decoded: 0 };
  let calls = 0;
  const stream = new TurnStream({
    parser: {
      ...parser,
      parse: (text, own) => {
        cost.parsed += text.length;
        return parser.parse(text, own);
      },
    },
    tools,
    promptEnd,
    isHeld: false,
    decode: async (ids) => {
      cost.decoded += ids.length;
      return [...ids].map((id) => (id === broken ? '\ufffd' : String.fromCodePoint(id))).join('');
    },
    makeCallId: () => `call_${calls++}`,
    emit: (event) => void events.push(event),
  });
  return { stream, events, cost };
}

const push = (stream: TurnStream, text: string) => {
  for (const letter of text) stream.push(Int32Array.of(letter.codePointAt(0) ?? 0));
};

/** All that was shown: what an official client joins. */
function join(events: readonly TurnEvent[]) {
  const shown = { text: '', reasoning: '', calls: [] as { name: string; json: string }[] };
  for (const event of events) {
    if (event.kind === 'call') shown.calls.push({ name: event.name, json: '' });
    else if (event.kind === 'arguments') Object.assign(shown.calls.at(-1) ?? {}, { json: (shown.calls.at(-1)?.json ?? '') + event.text });
    else shown[event.kind] += event.text;
  }
  return shown;
}

/** Pushes the text in tokens of several characters. Returns what was shown before the end, and in the end. */
async function play(format: ToolFormat, text: string) {
  const parser = findToolParser(format);
  const { content, reasoning, calls } = parser.parse(text, tools);
  const {
    opens: [open = ''],
  } = thoughtsOf(callMarks[format] ?? { opens: [] }, parser.reasoning ?? thinkTags);
  const { stream, events } = openStream(parser, { promptEnd: reasoning !== undefined && !text.includes(open) ? open : '' });
  const letters = [...text];
  for (let at = 0, size = 1; at < letters.length; at += size, size = 1 + ((at * 7) % 6)) {
    stream.push(Int32Array.from(letters.slice(at, at + size).map((letter) => letter.codePointAt(0) ?? 0)));
    await new Promise(setImmediate);
  }
  const early = join(events);
  const said = { role: 'assistant' as const, content, ...(reasoning !== undefined && { reasoning }), tool_calls: calls };
  const shown = await stream.finish(said);
  return { early, late: join(events), shown, said };
}

for (const [format, text, calls, { content = '' } = {}] of rows) {
  test(`${format}: a client is shown what ${JSON.stringify(text.slice(0, 50))} is read as`, async () => {
    const { late, shown, said } = await play(format, text);
    assert.deepEqual(
      late.calls.slice(0, calls.length).map(({ name, json }) => [name, JSON.parse(json)]),
      calls.map(([name, args]) => [name, args]),
    );
    assert.equal(late.text, content);
    if (late.calls.length === calls.length) assert.ok(isShownAs(shown, said), JSON.stringify({ shown, said }));
  });
}

/** A call in each format, with a text that is long enough to be shown in pieces. */
const long = `cat > "file" <<END\n${Array.from({ length: 60 }, (_, at) => `line ${at} of the text\n`).join('')}`;

const more: Partial<Record<ToolFormat, string>> = {
  mistral: '[TOOL_CALLS]bash[ARGS]{"command": "ls"}',
  pythonic: '[bash(command="ls")]',
  'deepseek-v3.2':
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="bash">\n<｜DSML｜parameter name="command" string="true">ls</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
  'tool-calls-list': '<tool_calls>[{"name": "bash", "arguments": {"command": "ls"}}]</tool_calls>',
  'functionary-v3.1': '<function=bash>{"command": "ls"}</function>',
  solar: '<|tool_calls|><|tool_call:begin|>1<|tool_call:name|>bash<|tool_call:args|>{"command": "ls"}<|tool_call:end|><|calls|>',
  gigachat: '<|function_call|>{"name": "bash", "arguments": {"command": "ls"}}',
  minicpm5: '<function name="bash"><param name="command">ls</param></function>',
  'kimi-k3':
    '<|open|>tools<|sep|><|open|>call tool="bash"<|sep|><|open|>argument key="command" type="string"<|sep|>ls<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
  'minimax-m3':
    ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="bash">]<]minimax[>[<command>ls]<]minimax[>[</command>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>',
  fenced: '```bash\nls\n```',
};

function withLongCommand(format: ToolFormat): string {
  const own = more[format];
  const row = rows.find(([name, text, calls, rest]) => name === format && /\bls\b/.test(text) && calls.length > 0 && !rest?.malformed);
  const text = own ?? row?.[1] ?? '';
  const value = /"ls"/.test(text) ? JSON.stringify(long).slice(1, -1) : long.trim();
  return text.replace(/\bls\b/, () => value);
}

test('in every format with marks, a long text argument is shown while it is sampled, and is whole in the end', async (context) => {
  for (const format of toolFormats.filter((name) => callMarks[name] !== undefined)) {
    const text = withLongCommand(format);
    const { shown, said, late } = await play(format, text);
    assert.ok(said.tool_calls.length > 0 && isShownAs(shown, said), `${format}: ${JSON.stringify({ shown, said }).slice(0, 2000)}`);
    const { early } = await play(format, text.slice(0, text.indexOf('line 50')));
    const pieces = early.calls[0]?.json.length ?? 0;
    context.diagnostic(`${format}: ${pieces} of ${late.calls[0]?.json.length} characters of the arguments`);
    if (format === 'minimax-m3') continue; // the tag that ends an argument has its name
    assert.ok(pieces > 500, `${format} shows ${pieces} characters of the arguments early`);
    assert.ok(late.calls[0]?.json.startsWith(early.calls[0]?.json ?? '?'), format);
  }
});

test('text before a call is shown as it is sampled in every format with marks', async () => {
  for (const format of toolFormats.filter((name) => callMarks[name] !== undefined)) {
    const { early } = await play(format, format === 'functionary-v3.2' ? 'all\nLet me look.' : 'Let me look at it');
    assert.equal(early.text.slice(0, 10), 'Let me loo', format);
  }
});

test('whatever the text, and wherever it is cut, no piece is taken back, and whole arguments are JSON of what was parsed', async () => {
  const random = makeRandom(11);
  const pieces = [
    ...new Set(rows.flatMap(([, text]) => text.match(/<[^<>]{1,60}>|\[\/?[A-Z_]+\]|```\w*|[[\](){}"'=:,\\]|\w+|\s+/g) ?? [])),
  ];
  for (let round = 0; round < 1500; round += 1) {
    const [format, text] = rows[Math.floor(random() * rows.length)] ?? rows[0] ?? ['hermes', ''];
    const insert = Array.from({ length: Math.floor(random() * 4) }, () => pieces[Math.floor(random() * pieces.length)]).join('');
    const at = Math.floor(random() * text.length);
    const { early, late, shown } = await play(format, text.slice(0, at) + insert + (random() < 0.7 ? text.slice(at) : ''));
    assert.ok(late.text.startsWith(early.text) && late.reasoning.startsWith(early.reasoning));
    for (const [index, call] of early.calls.entries()) assert.ok(late.calls[index]?.json.startsWith(call.json), text);
    for (const [index, { json }] of late.calls.entries()) {
      const args = shown.tool_calls?.[index]?.arguments ?? {};
      if (Object.keys(args).length > 0) assert.deepEqual(JSON.parse(json), args, text);
    }
  }
});

test('an argument that turns out to be another is said again, so that the arguments are those that were parsed', async () => {
  const twice = `<tool_call>{"name": "bash", "arguments": {"command": "${'a'.repeat(100)}", "1": 2, "command": "b"}}</tool_call>`;
  const { early, late } = await play('hermes', twice);
  assert.ok((early.calls[0]?.json.length ?? 0) > 50);
  assert.deepEqual(JSON.parse(late.calls[0]?.json ?? ''), { command: 'b', 1: 2 });
});

test('reasoning that the prompt has opened is shown as reasoning', async () => {
  const { stream, events } = openStream(findToolParser('hermes'), { promptEnd: '<|im_start|>assistant\n<think>\n' });
  push(stream, 'hm</think>Let me look.');
  await stream.finish({ content: 'Let me look.', reasoning: 'hm' });
  assert.deepEqual(join(events), { text: 'Let me look.', reasoning: 'hm', calls: [] });
});

test('a call with thousands of closing marks, and one without an end, are parsed a few times, and shown at the end', async () => {
  for (const text of [
    `<tool_call>${'x</tool_call>'.repeat(3000)}`,
    `<tool_call>{"name": "bash", "arguments": {"a": "${'x'.repeat(40_000)}`,
  ]) {
    const { stream, cost } = openStream(findToolParser('hermes'));
    push(stream, text);
    const shown = await stream.finish({ content: text });
    assert.equal(shown.content, text);
    assert.ok(cost.parsed < 32 * text.length, `${cost.parsed} characters were parsed`);
  }
});

test('thousands of tokens that are no character are decoded a few times each', async () => {
  const { stream, cost } = openStream(findToolParser('hermes'), { broken: 7 });
  for (let at = 0; at < 5000; at += 1) stream.push(Int32Array.of(7));
  await stream.finish({ content: '\ufffd'.repeat(5000) });
  assert.ok(cost.decoded < 40 * 5000, `${cost.decoded} tokens were decoded`);
});
