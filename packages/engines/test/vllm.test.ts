// vLLM's adapter detects which route a server has, and reads ids from where they are cheapest.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Log, silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { backendId, RolloutError, sampling } from '@millrace/protocol';
import { openFakeBackend, openFakeTokens } from '@millrace/testkit';
import { Agent } from 'undici';
import type { BackendProbe, BackendRecord, GenerateRequest } from '../src/backend.ts';
import { openVllmBackend } from '../src/vllm.ts';
import { completionsRoute, generateRoute } from '../src/vllm-wire.ts';
import { openServer } from './open-server.ts';

const dispatcher = new Agent();
after(() => dispatcher.destroy());
const tokens = await openFakeTokens();
const options = { dispatcher, log: silentLog, pace: new Pace() };

function makeRecord(url: string): BackendRecord {
  return { id: backendId.parse('b1'), url, dialect: 'vllm', policyVersion: 0, state: 'up' };
}

function makeRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  const signal = new AbortController().signal;
  const base = { promptJson: Buffer.from('1,2,3'), promptTokens: 3, sampling: sampling.parse({}), maxTokens: 4096, stopTokenIds: [] };
  return { ...base, sessionId: 's', requestId: 'r', signal, ...changes };
}

test('a server without the generate route is asked for it once, then for completions', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens, withoutGenerate: 404 });
  const backend = openVllmBackend(makeRecord(fake.url), options);
  for (let i = 0; i < 3; i++) assert.equal((await backend.generate(makeRequest())).finishReason, 'stop');
  assert.deepEqual(
    fake.requests.map(({ route }) => route),
    ['completions', 'completions', 'completions'],
  );
  assert.equal(fake.misses, 1);
});

test('a plain vllm serve works: its 403 is logged and reported once, then completions are used', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens, withoutGenerate: 403 });
  const logged: unknown[] = [];
  const found: BackendProbe[] = [];
  const log: Log = { ...silentLog, info: (event, fields) => void logged.push([event, fields?.route]) };
  const backend = openVllmBackend(makeRecord(fake.url), { ...options, log, onProbe: (probe) => void found.push(probe) });
  for (let i = 0; i < 3; i++) assert.equal((await backend.generate(makeRequest())).finishReason, 'stop');
  assert.deepEqual(logged, [['backend-without-generate', '/v1/completions']]);
  assert.equal(found.length, 1);
  assert.equal(found[0]?.route, '/v1/completions');
  assert.match(found[0]?.routeReason ?? '', /generate answered 403: Scale-out endpoints are disabled. Restart vllm serve/);
});

test('a backend that is known to lack the generate route is not asked for it again', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens, withoutGenerate: 404 });
  const backend = openVllmBackend({ ...makeRecord(fake.url), probe: { route: '/v1/completions' } }, options);
  assert.equal((await backend.generate(makeRequest())).finishReason, 'stop');
  assert.equal(fake.misses, 0);
});

test('a 404 on both routes is a failure of the backend, not of the request', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
  const lost = openVllmBackend(makeRecord(`${fake.url}/nowhere`), options);
  await assert.rejects(lost.generate(makeRequest()), (error) => error instanceof RolloutError && error.code === 'backend-failed');
  assert.equal(fake.misses, 2);
});

// As recorded from vLLM 0.32.0, except for the last: SGLang names no code.
const lateErrors = [
  [
    '{"error": {"message": "Token id 60000 is out of vocabulary", "type": "BadRequestError", "param": null, "code": 400}}',
    'backend-refused',
    undefined,
  ],
  [
    '{"error": {"message": "The decoder prompt (length 2058) is longer than the maximum model length of 2048. Make sure that `max_model_len` is no smaller than the number of text tokens.", "type": "BadRequestError", "param": null, "code": 400}}',
    'backend-refused',
    'context-length',
  ],
  [
    '{"error": {"message": "The engine is currently busy.", "type": "Service Unavailable", "param": null, "code": 503}}',
    'backend-failed',
    'busy',
  ],
  [
    '{"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": null, "code": 500}}',
    'backend-failed',
    undefined,
  ],
  ['{"error": {"message": "The input_ids contains values greater than the vocab size."}}', 'backend-refused', undefined],
] as const;

test('a token id that the model does not have is named, and the tokenizer is suspected', async () => {
  let text = '';
  await using server = await openServer((_, response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end(text);
  });
  const backend = openVllmBackend(makeRecord(server.url), options);
  for (const [message, wanted] of [
    [
      'Token id 151644 is out of vocabulary',
      /token id 151644 is out of the model's vocabulary: the service's tokenizer is not the model's/,
    ],
    ['Prompt contains invalid tokens', /: a token id is out of the model's vocabulary/],
    ['The input_ids contains values greater than the vocab size.', /: a token id is out of the model's vocabulary/],
  ] as const) {
    text = JSON.stringify({ error: { message, code: 400 } });
    await assert.rejects(backend.generate(makeRequest()), wanted);
  }
});

test('an error inside a 200 stream is classified like a status', async () => {
  let event = '';
  await using server = await openServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).end(`data: ${event}\n\ndata: [DONE]\n\n`);
  });
  for (const dialect of ['vllm', 'vllm-completions'] as const) {
    const backend = openVllmBackend({ ...makeRecord(server.url), dialect }, options);
    for (const streamed of [{ onTokens: () => {} }, { cut: new AbortController().signal }]) {
      for (const [text, code, reason] of lateErrors) {
        event = text;
        await assert.rejects(backend.generate(makeRequest(streamed)), (error) => {
          assert.ok(error instanceof RolloutError);
          assert.deepEqual([error.code, error.details?.reason], [code, reason], text);
          return true;
        });
      }
    }
  }
});

test('a completion that is aborted before its first token is an abort without tokens', () => {
  // vLLM skips empty events, also the one with the finish reason, so only the usage comes.
  const usage = { prompt_tokens: 3, total_tokens: 3, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } };
  const stream = completionsRoute.openStream?.(makeRequest()) ?? assert.fail();
  stream.take(JSON.stringify({ id: 'cmpl-r', object: 'text_completion', created: 1, model: 'm', choices: [], usage }));
  const { tokenIds, finishReason } = stream.end(false);
  assert.deepEqual([tokenIds.length, finishReason], [0, 'abort']);
  const truncated = completionsRoute.openStream?.(makeRequest()) ?? assert.fail();
  assert.throws(() => truncated.end(false), /undefined as the finish reason/);
});

test('a logprob of another token than the sampled one is refused', () => {
  const read = (content: readonly unknown[]) => {
    const choice = { index: 0, finish_reason: 'stop', token_ids: [504, 2], logprobs: { content } };
    return generateRoute.parse(JSON.stringify({ choices: [choice] }), makeRequest()).logprobs.length;
  };
  const entry = { logprob: -0.5, rank: 1 };
  assert.equal(read([504, 2].map((token_id) => ({ ...entry, token_id }))), 2);
  assert.equal(read([504, 2].map((id) => ({ ...entry, token: `token_id:${id}` }))), 2);
  assert.equal(
    read([
      { ...entry, token: 'The' },
      { ...entry, token: '<|im_end|>' },
    ]),
    2,
  );
  assert.throws(() => read([504, 3].map((token_id) => ({ ...entry, token_id }))), /two ids for one token: 2 and, with its logprob, 3/);
  assert.throws(() => read([505, 2].map((id) => ({ ...entry, token: `token_id:${id}` }))), /two ids for one token: 504/);
});

test('a completion does not return the prompt', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
  const backend = openVllmBackend({ ...makeRecord(fake.url), dialect: 'vllm-completions' }, options);
  await backend.generate(makeRequest());
  assert.equal(fake.requests[0]?.sampling.return_tokens_as_token_ids, true);
  assert.equal(fake.requests[0]?.sampling.return_token_ids, undefined);
});

test('a completion that names its tokens by text is refused', () => {
  const logprobs = { tokens: ['token_id:5', 'yes'], token_logprobs: [-1, -2] };
  const text = JSON.stringify({ choices: [{ logprobs, finish_reason: 'stop' }] });
  assert.throws(() => completionsRoute.parse(text, makeRequest()), /"yes" as a token id/);
});

test('a reply of 4,096 tokens costs a few times what reading its JSON does', () => {
  const token_ids = Array.from({ length: 4096 }, (_, i) => 100_000 + i);
  const content = token_ids.map((token_id) => {
    const entry = { token_id, logprob: -0.123456789, rank: 1 };
    return { ...entry, top_logprobs: [entry] };
  });
  const text = JSON.stringify({
    choices: [{ index: 0, token_ids, logprobs: { content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3 },
  });
  const timeOf = (act: () => void) => {
    const startedAt = performance.now();
    act();
    return performance.now() - startedAt;
  };
  const rounds = Array.from({ length: 15 }, () => [
    timeOf(() => assert.equal(generateRoute.parse(text, makeRequest()).tokenIds.length, 4096)),
    timeOf(() => JSON.parse(text)),
  ]);
  const [parsed, read] = [0, 1].map((index) => Math.min(...rounds.map((times) => times[index] ?? 0)));
  assert.ok(Number(parsed) < 10 * Number(read), `${parsed} ms, and ${read} ms to read it`);
});

const long = 'one two three '.repeat(30);

test('a call that can be cut sends few events, and a cut keeps every token that was sampled', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: long }), tokens, tokenMs: 2 });
  const backend = openVllmBackend(makeRecord(fake.url), options);
  const cut = new AbortController();
  let sampled = 0;
  fake.events.on('tokens', (count: number) => {
    if (!cut.signal.aborted) sampled = count;
    if (count >= 40) cut.abort();
  });
  const { tokenIds, logprobs, finishReason } = await backend.generate(makeRequest({ cut: cut.signal }));
  assert.equal(fake.requests[0]?.sampling.stream_interval, 64);
  assert.equal(finishReason, 'abort');
  assert.ok(tokenIds.length >= sampled && sampled >= 40, `${tokenIds.length} of ${sampled} tokens`);
  assert.equal(logprobs.length, tokenIds.length);
});

test('a call that is cut before its first token closes the connection and keeps none', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: long }), tokens, latencyMs: 10_000, tokenMs: 2 });
  const cut = new AbortController();
  fake.events.once('request', () => cut.abort());
  const { tokenIds, finishReason } = await openVllmBackend(makeRecord(fake.url), options).generate(makeRequest({ cut: cut.signal }));
  assert.deepEqual([finishReason, tokenIds.length], ['abort', 0]);
});

test('a server with several API processes is asked again until the one that has the request aborts it', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: long }), tokens, tokenMs: 15 });
  let aborts = 0;
  await using front = await openServer(async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    if (request.url?.endsWith('/abort_requests') && ++aborts < 3) return void response.writeHead(200).end();
    const headers = { 'content-type': 'application/json', 'x-request-id': `${request.headers['x-request-id']}` };
    const reply = await fetch(`${fake.url}${request.url}`, { method: 'POST', body, headers });
    response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type') ?? 'text/plain' });
    for await (const chunk of reply.body ?? []) response.write(chunk);
    response.end();
  });
  const cut = new AbortController();
  fake.events.on('tokens', (count: number) => count >= 5 && cut.abort());
  const { tokenIds } = await openVllmBackend(makeRecord(front.url), options).generate(makeRequest({ cut: cut.signal }));
  assert.equal(aborts, 3);
  assert.ok(tokenIds.length > 5 && tokenIds.length < 200, `${tokenIds.length} tokens`);
});

test('a server that cannot abort by id sends a few tokens in each event, and a cut keeps those that came', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: long }), tokens, tokenMs: 2, withoutGenerate: 403 });
  const backend = openVllmBackend(makeRecord(fake.url), options);
  const cut = new AbortController();
  fake.events.on('tokens', (count: number) => count >= 12 && cut.abort());
  const { tokenIds, finishReason } = await backend.generate(makeRequest({ cut: cut.signal }));
  assert.equal(fake.requests[0]?.sampling.stream_interval, 8);
  assert.deepEqual([finishReason, tokenIds.length >= 9], ['abort', true]);
});

test('a completion that returns experts is not streamed, because its stream has none', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens, routedExperts: true });
  const backend = openVllmBackend({ ...makeRecord(fake.url), dialect: 'vllm-completions' }, options);
  const request = makeRequest({ sampling: sampling.parse({ routed_experts: true }), cut: new AbortController().signal });
  assert.ok((await backend.generate(request)).routedExperts);
  assert.equal(fake.requests[0]?.sampling.stream, false);
});

test('a rank is sent as the header that vLLM reads, and none without a rank', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
  const backend = openVllmBackend(makeRecord(fake.url), options);
  await backend.generate(makeRequest({ rank: 3 }));
  await backend.generate(makeRequest());
  assert.deepEqual(
    fake.requests.map(({ headers }) => headers['x-data-parallel-rank']),
    ['3', undefined],
  );
});
