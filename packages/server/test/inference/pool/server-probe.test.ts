// What is learned about a server when it joins, without sampling anything.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFakeBackend, openFakeTokens } from '@millrace/testkit';
import { systemClock } from '../../../src/base/clock.ts';
import { probeServer } from '../../../src/inference/pool/server-probe.ts';
import { openServer } from '../open-server.ts';

const tokens = await openFakeTokens();
const policy = () => ({ text: 'yes' });
const options = { clock: systemClock, signal: new AbortController().signal };

test('a vLLM says its version, model and context length, and samples nothing', async () => {
  await using fake = await openFakeBackend({ policy, tokens, model: 'm', maxModelLen: 2048 });
  const { atMs, ...found } = await probeServer({ url: fake.url, dialect: 'vllm' }, options);
  assert.deepEqual(found, { engine: 'vllm', version: '0.32.0', model: 'm', contextTokens: 2048, ranks: 1 });
  assert.ok(atMs);
  assert.equal(fake.generations, 0);
});

test('a vLLM without the generate route is found to use completions', async () => {
  await using fake = await openFakeBackend({ policy, tokens, withoutGenerate: 403 });
  const { route, routeReason } = await probeServer({ url: fake.url, dialect: 'vllm' }, options);
  assert.equal(route, '/v1/completions');
  assert.match(routeReason ?? '', /403: Scale-out endpoints are disabled/);
});

test('a llama-server says its build and the context of one slot', async () => {
  const model = { id: 'm', owned_by: 'llamacpp', meta: { n_ctx: 8192 } };
  await using server = await openReplies({
    'GET /health': {},
    'GET /v1/models': { data: [model] },
    'GET /props': { build_info: 'b11669', default_generation_settings: { n_ctx: 2048 } },
    'POST /completion': {},
  });
  const { atMs: _, ...found } = await probeServer({ url: server.url, dialect: 'llamacpp' }, options);
  assert.deepEqual(found, { engine: 'llamacpp', version: 'b11669', model: 'm', contextTokens: 2048 });
});

test('a server that is not there, lacks the token route, wants another key or serves another model does not pass', async () => {
  await using fake = await openFakeBackend({ policy, tokens, model: 'm', apiKey: 'secret' });
  await using other = await openReplies({ 'GET /health': {} });
  const cases = [
    [{ url: 'http://127.0.0.1:9' }, /ECONNREFUSED|127\.0\.0\.1:9/],
    [{ url: other.url }, /\/inference\/v1\/generate answered 404/],
    [{ url: fake.url, apiKey: 'wrong' }, /answered 401/],
    [{ url: fake.url, apiKey: 'secret', model: 'x' }, /it serves "m", not the model "x"/],
  ] as const;
  for (const [server, message] of cases) await assert.rejects(probeServer({ ...server, dialect: 'vllm' }, options), message);
});

test('data-parallel ranks are learned: from the metrics of vLLM, from the server info of SGLang', async () => {
  await using fake = await openFakeBackend({ policy, tokens, ranks: 4 });
  assert.equal((await probeServer({ url: fake.url, dialect: 'vllm' }, options)).ranks, 4);
  await using server = await openReplies({
    'GET /health': {},
    'GET /v1/models': { data: [{ id: 'm', owned_by: 'sglang', max_model_len: 4096 }] },
    'GET /server_info': { version: '0.5.23', dp_size: 8 },
    'POST /generate': {},
  });
  assert.equal((await probeServer({ url: server.url, dialect: 'sglang' }, options)).ranks, 8);
});

/** Answers 404 to everything else. */
function openReplies(replies: Readonly<Record<string, unknown>>) {
  return openServer((request, response) => {
    const reply = replies[`${request.method} ${request.url}`];
    response.writeHead(reply === undefined ? 404 : 200).end(JSON.stringify(reply ?? { detail: 'Not Found' }));
  });
}
