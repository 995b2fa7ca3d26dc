// Gateways through a running service: an agent elsewhere talks to one with an official client, and every token of its trajectory is what
// the backend sampled.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findWrongToken, openFakeBackend, qwen3Folder, renderCall, TestService } from '@millrace/testkit';
import OpenAI from 'openai';

const longText = 'There is one file. It is named a.txt, and no one has read it since it was written by the last agent that was here.';

const tools = [
  {
    type: 'function' as const,
    function: { name: 'bash', description: 'Runs.', parameters: { type: 'object', properties: { command: { type: 'string' } } } },
  },
];

test('an agent elsewhere talks to a gateway as to OpenAI, and its rollout has every token', async () => {
  await using backend = await openFakeBackend({
    policy: ({ turn }) => ({ text: turn === 0 ? `Let me look.\n${renderCall('bash', { command: 'ls -l' })}` : longText }),
    tokenMs: 15,
  });
  await using service = await TestService.open({ workers: 1, tokenizer: await qwen3Folder() });
  await service.client.backends.join({ url: backend.url });
  const opened = await post(`${service.url}/v1/gateways`, { group: 'g1', metadata: { step: 1 } });
  const client = new OpenAI({ baseURL: opened.base_url, apiKey: opened.key, maxRetries: 0 });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'What is here?' }];
  const first = await client.chat.completions.create({ model: 'm', messages, tools });
  const [choice] = first.choices;
  assert.equal(choice?.finish_reason, 'tool_calls');
  assert.equal(choice.message.content, 'Let me look.');
  const [call] = choice.message.tool_calls ?? [];
  assert.ok(call?.type === 'function');
  assert.deepEqual(JSON.parse(call.function.arguments), { command: 'ls -l' });
  messages.push(choice.message, { role: 'tool', tool_call_id: call.id, content: 'a.txt' });
  const stream = await client.chat.completions.create({
    model: 'm',
    messages,
    tools,
    stream: true,
    stream_options: { include_usage: true },
  });
  let [text, chunks] = ['', 0];
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    chunks += 1;
  }
  assert.equal(text, longText);
  assert.ok(chunks > 10, `text comes in pieces, not in ${chunks} chunks`);
  const ended = await post(`${service.url}/v1/gateways/${opened.id}/reward`, { reward: 0.5 });
  assert.equal(ended.state, 'done', JSON.stringify(ended));
  assert.equal(ended.reward, 0.5);
  assert.equal(ended.result.score.gateway.exact_share, 1);
  assert.equal(ended.result.score.gateway.branches.length, 1);
  const trajectory = await service.client.trajectory(opened.id);
  assert.deepEqual(findWrongToken(trajectory), []);
  const seen = trajectory.segments.slice(0, -1).flatMap(({ tokenIds }) => [...tokenIds]);
  assert.deepEqual(seen, [...(backend.requests.at(-1)?.promptIds ?? [])]);
  assert.deepEqual(
    trajectory.segments.map(({ kind }) => kind),
    ['prompt', 'sampled', 'observation', 'sampled'],
  );
});

async function post(url: string, body: unknown, key?: string) {
  const headers = { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
  const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return JSON.parse(await reply.text());
}

test('a gateway refuses other keys and broken bodies in the shape of the wire, and ends as its caller says', async () => {
  await using backend = await openFakeBackend({ policy: () => ({ text: 'Hello.' }) });
  await using service = await TestService.open({ workers: 1, tokenizer: await qwen3Folder() });
  await service.client.backends.join({ url: backend.url });
  const opened = await post(`${service.url}/v1/gateways`, {});
  const messages = [{ role: 'user' as const, content: 'Hi.' }];
  const foreign = new OpenAI({ baseURL: opened.base_url, apiKey: 'mrg-foreign', maxRetries: 0 });
  await assert.rejects(foreign.chat.completions.create({ model: 'm', messages }), OpenAI.AuthenticationError);
  const broken = await fetch(`${opened.base_url}/messages`, { method: 'POST', headers: { 'x-api-key': opened.key }, body: '{"a":' });
  assert.equal(broken.status, 400);
  assert.equal((await toJson(broken)).error.type, 'invalid_request_error');
  const unknown = await fetch(`${opened.base_url}/nothing`, { headers: { authorization: `Bearer ${opened.key}` } });
  assert.equal(unknown.status, 404);
  assert.equal(backend.generations, 0);
  const client = new OpenAI({ baseURL: opened.base_url, apiKey: opened.key, maxRetries: 0 });
  await client.chat.completions.create({ model: 'm', messages });
  const discarded = await post(`${service.url}/v1/gateways/${opened.id}/reward`, { discard: 'the task was wrong' });
  assert.deepEqual([discarded.state, discarded.reward], ['cancelled', null]);
  assert.equal(discarded.result.tokens.sampled > 0, true);
  const idle = await post(`${service.url}/v1/gateways`, { idle_timeout_s: 0.2 });
  const abandoned = await toJson(await fetch(`${service.url}/v1/gateways/${idle.id}?wait=60`));
  assert.deepEqual([abandoned.state, abandoned.failure.code], ['failed', 'gateway-abandoned']);
});

async function toJson(reply: Response) {
  return JSON.parse(await reply.text());
}
