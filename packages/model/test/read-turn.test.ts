// Turns of any length: read without blocking the event loop, and with a bounded number of calls.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findParts } from '@millrace/base/parts';
import { ThreadPool } from '@millrace/base/threads/thread-pool';
import { toValue } from '../src/jinja/values/values.ts';
import { readTurn } from '../src/read-turn.ts';
import { findToolParser, toolParsers } from '../src/tool-calls/tool-parsers.ts';

const openPool = () => new ThreadPool({ entry: findParts().graderThread, name: 'turns', threads: 1, heapMiB: 256 });
const tools = [{ name: 'bash', description: '', parameters: { type: 'object', properties: { n: { type: 'integer' } } } }];

/** Of this thread, in milliseconds. */
async function measureCpu<T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly value: T }> {
  const before = process.threadCpuUsage();
  const value = await work();
  const { user, system } = process.threadCpuUsage(before);
  return { ms: (user + system) / 1000, value };
}

/** One call in each format, for a turn with many. */
const oneCall: Readonly<Record<string, string>> = {
  hermes: '<tool_call>{"name":"bash","arguments":{"n":[1.0]}}</tool_call>',
  'qwen3-coder': '<function=bash>\n<parameter=n>\n[1.0\n</parameter>\n</function>',
  glm: '<tool_call>bash\n<arg_key>n</arg_key>\n<arg_value>[1.0</arg_value></tool_call>',
  mistral: '[TOOL_CALLS]bash[ARGS]{"n":[1.0]}',
  harmony: '<|start|>assistant to=functions.bash<|message|>{"n":[1.0]}<|call|>',
  fenced: '```bash\na\n```\n',
  pythonic: '<|python_start|>[bash(n=[1.0])]<|python_end|>',
  gemma4: '<|tool_call>call:bash{n:[1.0]}<tool_call|>',
  'llama3-json': '{"name":"bash","parameters":{"n":[1.0]}}',
  nemotron: '<TOOLCALL>[{"name":"bash","arguments":{"n":[1.0]}}]</TOOLCALL>',
  muse: '<atem:invoke name="bash"><atem:parameter name="n">1</atem:parameter></atem:invoke><|eom|>',
  inkling: '<|content_invoke_tool_json|>{"name":"bash","args":{"n":[1.0]}}<|end_message|>',
};

for (const [name, call] of Object.entries(oneCall))
  test(`${name}: of a megabyte of calls, 1,000 are read in less than 20 ms of the event loop`, async () => {
    await using pool = openPool();
    const text = call.repeat(Math.ceil((1 << 20) / call.length));
    const parser = toolParsers.find((one) => one.name === name) ?? assert.fail();
    await readTurn(pool, parser, { text: call.repeat(2000), tools });
    const { ms, value } = await measureCpu(() => readTurn(pool, parser, { text, tools }));
    assert.equal(value.calls.length, 1000);
    assert.match(value.malformed.join(), /Only the first 1000 tool calls of the turn were read/);
    assert.ok(ms < 20, `${ms} ms`);
  });

test('a call with more values than any call has is not run', async () => {
  await using pool = openPool();
  for (const values of [
    `[${'1,'.repeat(100_000)}1]`,
    `{${'"a":{},'.repeat(1)}"b":[${'[],'.repeat(30_000)}[]]}`,
    `"${'a'.repeat(100_000)}"`,
  ]) {
    const text = `<tool_call>{"name":"bash","arguments":{"x":${values}}}</tool_call>`;
    const { ms, value } = await measureCpu(() => readTurn(pool, findToolParser('hermes'), { text, tools }));
    assert.equal(value.calls.length, values.startsWith('"') ? 1 : 0);
    assert.ok(ms < 100, `${ms} ms`);
  }
});

test('the arguments of a long turn are rendered as the model wrote them', async () => {
  await using pool = openPool();
  const argumentsOf = async (filler: string) => {
    const text = `<tool_call>{"name":"bash","arguments":{"f":1.0,"i":12345678901234567890,"2":{"1":2.0}}}</tool_call>${filler}`;
    const { calls } = await readTurn(pool, findToolParser('hermes'), { text, tools });
    return toValue(calls[0]?.arguments);
  };
  assert.deepEqual(await argumentsOf('a'.repeat(20_000)), await argumentsOf(''));
  assert.deepEqual([...((await argumentsOf('a'.repeat(20_000))) as Map<string, unknown>).keys()], ['f', 'i', '2']);
});

test('an integer with a million digits costs the event loop nothing', async () => {
  await using pool = openPool();
  const text = `<tool_call>{"name":"bash","arguments":{"x":${'1'.repeat(1 << 20)}}}</tool_call>`;
  assert.ok((await measureCpu(() => readTurn(pool, findToolParser('hermes'), { text, tools }))).ms < 100);
});
