// The fake backend behaves like vLLM to its callers, and lets the test that opened it observe them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  echoPolicy,
  FakeBackend,
  type FakeBackendOptions,
  fakeLogprob,
  fixedPolicy,
  openFakeTokens,
  renderCall,
  scriptedPolicy,
} from '@millrace/testkit';

const tokens = await openFakeTokens();

async function openFake(options: FakeBackendOptions): Promise<FakeBackend> {
  const fake = new FakeBackend(options, tokens);
  await fake.listen();
  return fake;
}

// biome-ignore lint/suspicious/noExplicitAny: replies are inspected field by field
async function call(fake: { url: string }, path: string, body?: unknown): Promise<{ status: number; json: any }> {
  const response = await fetch(`${fake.url}${path}`, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, json: text.startsWith('{') ? JSON.parse(text) : text };
}

const chat = (...said: string[]) => {
  const turns = said.map((text, i) => `<|im_start|>${i % 2 === 0 ? 'user' : 'assistant'}\n${text}<|im_end|>\n`);
  return Array.from(tokens.encode(`${turns.join('')}<|im_start|>assistant\n`));
};

test('generate returns what the policy said, with the logprob of each token', async () => {
  await using fake = await openFake({ policy: () => ({ text: 'hi' }) });
  const token_ids = chat('hello');
  const { status, json } = await call(fake, '/inference/v1/generate', { token_ids, sampling_params: { max_tokens: 9, logprobs: 0 } });
  assert.equal(status, 200);
  const [choice] = json.choices;
  assert.deepEqual(choice.token_ids, [...tokens.encode('hi'), tokens.endOfTurnId]);
  assert.equal(choice.finish_reason, 'stop');
  for (const [i, { token_id, logprob }] of choice.logprobs.content.entries()) {
    assert.equal(token_id, choice.token_ids[i]);
    assert.equal(logprob, fakeLogprob(token_ids.length + i, choice.token_ids[i]));
  }
  assert.equal(json.usage.prompt_tokens, token_ids.length);
});

test('completions default to 16 tokens, and return ids only on request', async () => {
  await using fake = await openFake({ policy: () => ({ text: 'word '.repeat(100) }) });
  const prompt = chat('hello');
  const bare = await call(fake, '/v1/completions', { prompt });
  assert.equal(bare.json.usage.completion_tokens, 16);
  assert.equal(bare.json.choices[0].finish_reason, 'length');
  assert.equal(bare.json.choices[0].token_ids, null);
  assert.equal(bare.json.choices[0].logprobs, null);
  const full = await call(fake, '/v1/completions', { prompt, return_token_ids: true, logprobs: 0 });
  assert.equal(full.json.choices[0].token_ids.length, 16);
  assert.equal(full.json.choices[0].logprobs.token_logprobs.length, 16);
  assert.deepEqual(full.json.choices[0].prompt_token_ids, prompt);
});

const badBodies: readonly [string, unknown][] = [
  ['no ids', { sampling_params: {} }],
  ['an empty prompt', { token_ids: [], sampling_params: {} }],
  ['text instead of ids', { token_ids: ['a'], sampling_params: {} }],
  ['no sampling params', { token_ids: [1] }],
  ['no tokens to sample', { token_ids: [1], sampling_params: { max_tokens: 0 } }],
  ['a prompt that is longer than the context', { token_ids: Array(131_073).fill(1), sampling_params: {} }],
  ['a list', []],
];
for (const [what, body] of badBodies) {
  test(`${what} is a 400 with an error in it`, async () => {
    await using fake = await openFake({ policy: echoPolicy });
    const { status, json } = await call(fake, '/inference/v1/generate', body);
    assert.equal(status, 400);
    assert.equal(typeof json.error.message, 'string');
  });
}

test('the routes other than generation work', async () => {
  await using fake = await openFake({ policy: echoPolicy, model: 'm', maxModelLen: 77 });
  assert.equal((await call(fake, '/health')).status, 200);
  assert.equal((await call(fake, '/v1/models')).json.data[0].max_model_len, 77);
  assert.equal(typeof (await call(fake, '/version')).json.version, 'string');
  assert.match((await call(fake, '/metrics')).json, /vllm:num_requests_running\{engine="0",model_name="m"\} 0/);
  assert.deepEqual((await call(fake, '/tokenize', { prompt: 'hi<|im_end|>' })).json.tokens, [6023, 151645]);
  assert.equal((await call(fake, '/nowhere')).status, 404);
});

test('what the server was started with shows: masks, adapters, ranks, and the interval of a stream', async () => {
  const started = { model: 'm', adapters: ['tuned'], samplingMask: true, ranks: 2 };
  await using fake = await openFake({ policy: () => ({ text: 'one two three four' }), ...started });
  const ask = (more: Record<string, unknown>, sampling: Record<string, unknown> = {}) =>
    call(fake, '/inference/v1/generate', { token_ids: chat('go'), sampling_params: { max_tokens: 9, ...sampling }, ...more });
  const [choice] = (await ask({ model: 'tuned' })).json.choices;
  assert.deepEqual(
    choice.sampling_mask.map((mask: number[], i: number) => mask.includes(choice.token_ids[i])),
    choice.token_ids.map(() => true),
  );
  assert.equal((await ask({ model: 'other' })).status, 404);
  assert.match((await call(fake, '/metrics')).json, /engine="1"/);
  const events: string[] = (await ask({ stream: true }, { stream_interval: 2 })).json
    .split('\n\n')
    .filter((one: string) => one.includes('{'));
  assert.deepEqual(
    events.map((event) => JSON.parse(event.slice(6)).choices[0].token_ids.length),
    [1, 2, 2],
  );
});

test('a policy that throws is a 500, and the backend keeps running', async () => {
  let calls = 0;
  await using fake = await openFake({
    policy() {
      if (calls++ === 0) throw new Error('broken policy');
      return { text: 'hi' };
    },
  });
  const ask = () => call(fake, '/inference/v1/generate', { token_ids: [1], sampling_params: { max_tokens: 5 } });
  assert.match((await ask()).json.error.message, /broken policy/);
  assert.equal((await ask()).status, 200);
  assert.equal(fake.inFlight, 0);
});

test('a scripted policy answers by the opening and the turn', async () => {
  const policy = scriptedPolicy([
    { match: /apples/, turns: ['first', 'second', 'last'] },
    { match: /./, turns: ['other'] },
  ]);
  await using fake = await openFake({ policy });
  const said = async (...turns: string[]) => {
    const { json } = await call(fake, '/inference/v1/generate', { token_ids: chat(...turns), sampling_params: { max_tokens: 50 } });
    return tokens.decode(json.choices[0].token_ids);
  };
  assert.equal(await said('apples'), 'first<|im_end|>');
  assert.equal(await said('apples', 'first', 'go on'), 'second<|im_end|>');
  assert.equal(await said('apples', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'), 'last<|im_end|>');
  assert.equal(await said('pears', 'apples', 'x'), 'other<|im_end|>');
});

test('an echo repeats the last message', async () => {
  await using fake = await openFake({ policy: echoPolicy });
  const { json } = await call(fake, '/inference/v1/generate', { token_ids: chat('one', 'two', 'three'), sampling_params: {} });
  assert.equal(tokens.decode(json.choices[0].token_ids), 'three<|im_end|>');
});

test('a fixed policy calls bash, then finish, in exactly the given number of tokens', async () => {
  await using fake = await openFake({ policy: fixedPolicy({ turns: 2, tokensPerTurn: 64 }) });
  for (const [history, wanted] of [
    [['go'], renderCall('bash', { command: 'true' })],
    [['go', 'a', 'b'], renderCall('finish', { answer: 'done' })],
  ] as const) {
    const { json } = await call(fake, '/inference/v1/generate', { token_ids: chat(...history), sampling_params: { max_tokens: 100 } });
    assert.equal(json.choices[0].token_ids.length, 64);
    assert.ok(tokens.decode(json.choices[0].token_ids).includes(wanted));
  }
});

test('only the newest requests are kept', async () => {
  await using fake = await openFake({ policy: echoPolicy, keep: 2 });
  for (let i = 0; i < 5; i++) await call(fake, '/inference/v1/generate', { token_ids: [i], sampling_params: { max_tokens: 5 } });
  assert.deepEqual(
    fake.requests.map(({ promptIds }) => promptIds[0]),
    [3, 4],
  );
  assert.equal(fake.generations, 5);
});

test('as a separate process it prints its url, answers, and ends with its parent', async () => {
  const main = fileURLToPath(new URL('../src/fake-backend/process/main.ts', import.meta.url));
  const child = spawn(
    process.execPath,
    [main, '--policy', 'fixed', '--turns', '1', '--tokens-per-turn', '32', '--latency', 'long-tail:1'],
    {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    },
  );
  const exited = once(child, 'exit');
  assert.ok(child.stdout);
  const [line] = await once(createInterface(child.stdout), 'line');
  const { json } = await call(JSON.parse(line), '/inference/v1/generate', { token_ids: chat('go'), sampling_params: { max_tokens: 100 } });
  assert.equal(json.choices[0].token_ids.length, 32);
  child.disconnect();
  await exited;
});
