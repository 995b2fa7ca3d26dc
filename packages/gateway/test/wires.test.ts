// Each wire is read by the official client of its API, streamed and not, and its requests give the same canonical form.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { findWire, GatewayError, joinReply, type ReplyEvent, type WireRequest } from '@millrace/gateway';
import OpenAI from 'openai';

const events: readonly ReplyEvent[] = [
  { kind: 'keep-alive' },
  { kind: 'reasoning', text: 'Hm' },
  { kind: 'reasoning', text: ', so.' },
  { kind: 'text', text: 'Let me ' },
  { kind: 'text', text: 'look.' },
  { kind: 'call', id: 'call_a', name: 'bash' },
  { kind: 'arguments', text: '{"command":' },
  { kind: 'arguments', text: '"ls"}' },
  { kind: 'keep-alive' },
  { kind: 'call', id: 'call_b', name: 'bash' },
  { kind: 'arguments', text: '{"command":"pwd"}' },
  { kind: 'end', finish: 'calls', usage: { promptTokens: 10, sampledTokens: 7, cachedTokens: 4 } },
];
const schema = { type: 'object' as const, properties: { command: { type: 'string' } } };

/** Serves the events above, or an error, and keeps the requests. */
async function openWireServer(error?: GatewayError) {
  const requests: WireRequest[] = [];
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x');
    const found = findWire(request.method ?? '', pathname, searchParams);
    if (!found) return void response.writeHead(404).end();
    const { wire, address } = found;
    try {
      const given = wire.parse(await json(request), address);
      requests.push(given);
      if (error) throw error;
      const head = { id: '1', model: 'm', createdS: 1, promptTokens: 10 };
      if (!given.isStreamed) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wire.toReply(joinReply(events), head)));
        return;
      }
      const stream = wire.openStream(head, given);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(stream.start() + events.map((event) => stream.write(event)).join(''));
    } catch (thrown) {
      const known = thrown instanceof GatewayError ? thrown : new GatewayError('failed', String(thrown));
      response.writeHead(known.status, { 'content-type': 'application/json' }).end(JSON.stringify(wire.toError(known)));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What every client asked: a system message, a question, a turn with two calls, their results. */
function checkRequest(request: WireRequest | undefined): void {
  assert.ok(request);
  assert.deepEqual(
    request.messages.map(({ role, content, tool_calls = [], tool_call_id = '' }) => [
      role,
      content,
      tool_calls.map(({ id }) => id).join(),
      tool_call_id,
    ]),
    [
      ['system', 'Be short.', '', ''],
      ['user', 'What is here?', '', ''],
      ['assistant', 'Looking.', 'c1,c2', ''],
      ['tool', 'a.txt', '', 'c1'],
      ['tool', '/root', '', 'c2'],
    ],
  );
  assert.deepEqual(request.messages[2]?.tool_calls?.[0]?.arguments, { command: 'ls' });
  assert.deepEqual(request.tools, [{ name: 'bash', description: 'Runs.', parameters: schema }]);
  assert.equal(request.asked.temperature, 0.5);
  assert.equal(request.asked.max_tokens, 99);
}

test("OpenAI's client reads chat completions", async () => {
  await using server = await openWireServer();
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'x' });
  const call = (id: string, command: string) => ({
    id,
    type: 'function' as const,
    function: { name: 'bash', arguments: JSON.stringify({ command }) },
  });
  const body = {
    model: 'm',
    temperature: 0.5,
    max_completion_tokens: 99,
    messages: [
      { role: 'developer' as const, content: 'Be short.' },
      { role: 'user' as const, content: [{ type: 'text' as const, text: 'What is here?' }] },
      { role: 'assistant' as const, content: 'Looking.', tool_calls: [call('c1', 'ls'), call('c2', 'pwd')] },
      { role: 'tool' as const, tool_call_id: 'c1', content: 'a.txt' },
      { role: 'tool' as const, tool_call_id: 'c2', content: [{ type: 'text' as const, text: '/root' }] },
    ],
    tools: [{ type: 'function' as const, function: { name: 'bash', description: 'Runs.', parameters: schema } }],
  };
  const whole = await client.chat.completions.create(body);
  const streamed = await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion();
  for (const { choices, usage } of [whole, streamed]) {
    assert.equal(choices[0]?.finish_reason, 'tool_calls');
    assert.equal(choices[0].message.content, 'Let me look.');
    assert.deepEqual(
      choices[0].message.tool_calls?.map(
        (one) => one.type === 'function' && [one.id, one.function.name, JSON.parse(one.function.arguments)],
      ),
      [
        ['call_a', 'bash', { command: 'ls' }],
        ['call_b', 'bash', { command: 'pwd' }],
      ],
    );
    assert.equal(usage?.completion_tokens, 7);
  }
  for (const request of server.requests) checkRequest(request);
});

test("OpenAI's client reads responses", async () => {
  await using server = await openWireServer();
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'x' });
  const call = (call_id: string, command: string) => ({
    type: 'function_call' as const,
    call_id,
    name: 'bash',
    arguments: JSON.stringify({ command }),
  });
  const body = {
    model: 'm',
    temperature: 0.5,
    max_output_tokens: 99,
    instructions: 'Be short.',
    input: [
      { role: 'user' as const, content: 'What is here?' },
      { role: 'assistant' as const, content: 'Looking.' },
      call('c1', 'ls'),
      call('c2', 'pwd'),
      { type: 'function_call_output' as const, call_id: 'c1', output: 'a.txt' },
      { type: 'function_call_output' as const, call_id: 'c2', output: '/root' },
    ],
    tools: [{ type: 'function' as const, name: 'bash', description: 'Runs.', parameters: schema, strict: false }],
  };
  const whole = await client.responses.create(body);
  const streamed = await client.responses.stream(body).finalResponse();
  for (const { output, status, usage } of [whole, streamed]) {
    assert.equal(status, 'completed');
    assert.deepEqual(
      output.map((item) => item.type),
      ['reasoning', 'message', 'function_call', 'function_call'],
    );
    const last = output.at(-1);
    assert.ok(last?.type === 'function_call');
    assert.deepEqual([last.call_id, last.arguments], ['call_b', '{"command":"pwd"}']);
    assert.equal(usage?.output_tokens, 7);
  }
  for (const request of server.requests) checkRequest(request);
});

test("Anthropic's client reads messages", async () => {
  await using server = await openWireServer();
  const client = new Anthropic({ baseURL: server.url, apiKey: 'x' });
  const use = (id: string, command: string) => ({ type: 'tool_use' as const, id, name: 'bash', input: { command } });
  const body = {
    model: 'm',
    temperature: 0.5,
    max_tokens: 99,
    system: 'Be short.',
    messages: [
      { role: 'user' as const, content: 'What is here?' },
      { role: 'assistant' as const, content: [{ type: 'text' as const, text: 'Looking.' }, use('c1', 'ls'), use('c2', 'pwd')] },
      {
        role: 'user' as const,
        content: [
          { type: 'tool_result' as const, tool_use_id: 'c1', content: 'a.txt' },
          { type: 'tool_result' as const, tool_use_id: 'c2', content: [{ type: 'text' as const, text: '/root' }] },
        ],
      },
    ],
    tools: [{ name: 'bash', description: 'Runs.', input_schema: schema }],
  };
  const whole = await client.messages.create(body);
  const streamed = await client.messages.stream(body).finalMessage();
  for (const { content, stop_reason, usage } of [whole, streamed]) {
    assert.equal(stop_reason, 'tool_use');
    assert.deepEqual(
      content.map(({ type }) => type),
      ['thinking', 'text', 'tool_use', 'tool_use'],
    );
    const last = content.at(-1);
    assert.ok(last?.type === 'tool_use');
    assert.deepEqual([last.id, last.input], ['call_b', { command: 'pwd' }]);
    assert.equal(usage.output_tokens, 7);
  }
  for (const request of server.requests) checkRequest(request);
});

test("Google's client reads generateContent", async () => {
  await using server = await openWireServer();
  const client = new GoogleGenAI({ apiKey: 'x', httpOptions: { baseUrl: server.url } });
  const call = (id: string, command: string) => ({ functionCall: { id, name: 'bash', args: { command } } });
  const result = (id: string, output: string) => ({ functionResponse: { id, name: 'bash', response: { output } } });
  const body = {
    model: 'm',
    contents: [
      { role: 'user', parts: [{ text: 'What is here?' }] },
      { role: 'model', parts: [{ text: 'Looking.' }, call('c1', 'ls'), call('c2', 'pwd')] },
      { role: 'user', parts: [result('c1', 'a.txt'), result('c2', '/root')] },
    ],
    config: {
      systemInstruction: 'Be short.',
      temperature: 0.5,
      maxOutputTokens: 99,
      tools: [{ functionDeclarations: [{ name: 'bash', description: 'Runs.', parametersJsonSchema: schema }] }],
    },
  };
  const whole = await client.models.generateContent(body);
  assert.equal(whole.text, 'Let me look.');
  const calls = (whole.functionCalls ?? []).map(({ id, args }) => [id, args]);
  const streamed: typeof calls = [];
  let [text, sampled] = ['', 0];
  for await (const chunk of await client.models.generateContentStream(body)) {
    text += chunk.text ?? '';
    sampled = chunk.usageMetadata?.candidatesTokenCount ?? sampled;
    streamed.push(...(chunk.functionCalls ?? []).map(({ id, args }): (typeof calls)[number] => [id, args]));
  }
  assert.equal(text, 'Let me look.');
  assert.equal(sampled, 7);
  assert.deepEqual(streamed, calls);
  assert.deepEqual(calls.at(-1), ['call_b', { command: 'pwd' }]);
  for (const request of server.requests) checkRequest(request);
});

test('each client recognises the errors of its wire', async () => {
  await using server = await openWireServer(new GatewayError('context-length', 'too long'));
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'x', maxRetries: 0 });
  const messages = [{ role: 'user' as const, content: 'x' }];
  await assert.rejects(
    openai.chat.completions.create({ model: 'm', messages }),
    (error) => error instanceof OpenAI.BadRequestError && error.code === 'context_length_exceeded',
  );
  const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'x', maxRetries: 0 });
  await assert.rejects(anthropic.messages.create({ model: 'm', max_tokens: 1, messages }), /prompt is too long/);
  await assert.rejects(openai.chat.completions.create({ model: 'm', messages, n: 2 }), /n must be 1/);
  await assert.rejects(
    openai.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] }),
    /not supported/,
  );
});
