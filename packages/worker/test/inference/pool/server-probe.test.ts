// What is learned about a server when it joins, without sampling anything.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { Pace } from '@millrace/base/pace';
import { openConversation } from '@millrace/model';
import { RolloutError } from '@millrace/protocol';
import { openFakeBackend, openFakeTokens, qwen3Folder } from '@millrace/testkit';
import { openServer } from '../../../../engines/test/open-server.ts';
import { probeNewServer, probeServer } from '../../../src/inference/pool/server-probe.ts';
import { sampleTokenizer } from '../../../src/inference/pool/tokenizer-check.ts';

const tokens = await openFakeTokens();
const qwen3 = await sampleTokenizer(await openConversation(qwen3Folder()), new Pace());
const policy = () => ({ text: 'yes' });
const options = { clock: systemClock, signal: new AbortController().signal };

test('a vLLM says its version, model and context length, and a paused one samples nothing', async () => {
  await using fake = await openFakeBackend({ policy, tokens, model: 'm', maxModelLen: 2048, startedAt: 12.5 });
  const { atMs, ...found } = await probeServer({ url: fake.url, dialect: 'vllm' }, { ...options, tokenizer: qwen3, isPaused: true });
  const which = { instance: '12.5', root: '/models/m', logprobsReason: 'the policy was paused when it was asked' };
  assert.deepEqual(found, { engine: 'vllm', version: '0.32.0', model: 'm', contextTokens: 2048, ranks: 1, tokenizer: 'same', ...which });
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
  const model = { id: 'm', owned_by: 'llamacpp', meta: { n_ctx: 8192, n_params: 135, size: 96, ftype: 'Q4_1' } };
  await using server = await openReplies({
    'GET /health': {},
    'GET /v1/models': { data: [model] },
    'GET /props': { build_info: 'b11669', model_path: '/m.gguf', default_generation_settings: { n_ctx: 2048 } },
    'POST /completion': {},
  });
  const { atMs: _, ...found } = await probeServer({ url: server.url, dialect: 'llamacpp' }, options);
  const unchecked = { tokenizer: 'unchecked', tokenizerReason: 'no worker of this server has reported its tokenizer yet' };
  const which = { root: '/m.gguf', fingerprint: '135/96/Q4_1' };
  assert.deepEqual(found, { engine: 'llamacpp', version: 'b11669', model: 'm', contextTokens: 2048, ...unchecked, ...which });
});

/** As sglang-router 0.3.2 answers. */
const sglangRouter = (workers_count: number) => ({
  'GET /health': {},
  'GET /v1/models': { data: [{ id: 'unknown', object: 'model', owned_by: 'local' }] },
  'GET /get_server_info': { router_manager: true, routers_count: 1, workers_count },
  'POST /generate': {},
});

test('a router of SGLang is called as SGLang, and says how many servers it has', async () => {
  await using two = await openReplies(sglangRouter(2));
  const refused = probeNewServer({ url: two.url, dialect: 'vllm' }, options);
  await assert.rejects(refused, (error) => error instanceof RolloutError && error.details?.dialect === 'sglang');
  const { engine, version, model, isSeveral } = await probeNewServer({ url: two.url, dialect: 'sglang' }, options);
  assert.deepEqual([engine, version, model, isSeveral], [undefined, undefined, undefined, true]);
  await using one = await openReplies(sglangRouter(1));
  assert.equal((await probeNewServer({ url: one.url, dialect: 'sglang' }, options)).isSeveral, undefined);
});

test('a tokenizer that gives other ids is found, with the text and the ids of both sides', async () => {
  const [first = assert.fail(), ...others] = qwen3;
  const smol = [{ ...first, tokenIds: [1, 4093, ...first.tokenIds.slice(2)] }, ...others];
  for (const [tokenizer, dialect] of [
    ['vllm', 'vllm'],
    ['llamacpp', 'llamacpp'],
    ['sglang', 'sglang'],
  ] as const) {
    await using fake = await openFakeBackend({ policy, tokens, tokenizer, engine: dialect });
    const same = await probeServer({ url: fake.url, dialect }, { ...options, tokenizer: qwen3 });
    assert.equal(same.tokenizer, 'same', dialect);
    const found = await probeServer({ url: fake.url, dialect }, { ...options, tokenizer: smol });
    assert.equal(found.tokenizer, 'different', dialect);
    assert.match(found.tokenizerReason ?? '', /encodes "<\|im_start\|>user.* as \[151644, 872, .*, …\], and the service as \[1, 4093, /);
  }
});

test('a server without a tokenizer route is not checked, which is said', async () => {
  await using plain = await openReplies({ 'GET /health': {}, 'POST /generate': {} });
  const { tokenizer, tokenizerReason } = await probeServer({ url: plain.url, dialect: 'sglang' }, { ...options, tokenizer: qwen3 });
  assert.deepEqual([tokenizer, tokenizerReason], ['unchecked', 'POST /tokenize answered 404']);
});

test('a vLLM in its development mode says what its logprobs are of; logits are refused', async () => {
  const reports = (logprobs_mode: string) =>
    openReplies({
      'GET /health': {},
      'POST /inference/v1/generate': {},
      'GET /server_info?config_format=json': { vllm_config: { model_config: { logprobs_mode } } },
    });
  for (const [name, mode] of [
    ['raw_logprobs', 'raw'],
    ['processed_logprobs', 'processed'],
  ] as const) {
    await using server = await reports(name);
    assert.equal((await probeServer({ url: server.url, dialect: 'vllm' }, options)).logprobsMode, mode);
  }
  await using logits = await reports('raw_logits');
  await assert.rejects(probeServer({ url: logits.url, dialect: 'vllm' }, options), /raw_logits instead of logprobs/);
});

test('of any other vLLM, one token with top_k 1 shows whether its logprobs are processed; none is sampled while the policy is paused', async () => {
  for (const [logprob, mode] of [
    [0, 'processed'],
    [-2.5, 'raw'],
  ] as const) {
    const reply = { choices: [{ logprobs: { token_logprobs: [logprob] } }] };
    await using server = await openReplies({ 'GET /health': {}, 'POST /inference/v1/generate': {}, 'POST /v1/completions': reply });
    assert.equal((await probeServer({ url: server.url, dialect: 'vllm' }, options)).logprobsMode, mode);
    const paused = await probeServer({ url: server.url, dialect: 'vllm' }, { ...options, isPaused: true });
    assert.deepEqual([paused.logprobsMode, paused.logprobsReason], [undefined, 'the policy was paused when it was asked']);
  }
  await using silent = await openReplies({ 'GET /health': {}, 'POST /inference/v1/generate': {}, 'POST /v1/completions': {} });
  const unread = await probeServer({ url: silent.url, dialect: 'vllm' }, options);
  assert.deepEqual([unread.logprobsMode, unread.logprobsReason], [undefined, 'POST /v1/completions answered 200: {}']);
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

test('what a KV cache holds is learned: from the metrics of vLLM, from the server info of SGLang', async () => {
  await using fake = await openFakeBackend({ policy, tokens, ranks: 2, cacheTokens: 518_272 });
  assert.equal((await probeServer({ url: fake.url, dialect: 'vllm' }, options)).cacheTokens, 518_272);
  await using server = await openReplies({
    'GET /health': {},
    'GET /v1/models': { data: [{ id: 'm', owned_by: 'sglang', max_model_len: 4096 }] },
    'GET /server_info': { version: '0.5.23', max_total_num_tokens: 100_000 },
    'POST /generate': {},
  });
  assert.equal((await probeServer({ url: server.url, dialect: 'sglang' }, options)).cacheTokens, 100_000);
  await using without = await openReplies({
    'GET /health': {},
    'GET /server_info': { version: '0.5.23', max_total_num_tokens: 100_000, disable_radix_cache: true },
    'POST /generate': {},
  });
  assert.equal((await probeServer({ url: without.url, dialect: 'sglang' }, options)).cacheTokens, undefined);
});

test('a server whose page of metrics never comes is used without what it says', async () => {
  await using server = await openServer((request, response) => {
    if (request.url === '/metrics') return;
    const isShort = request.url?.startsWith('/metrics/');
    const status = isShort || request.url === '/health' ? 200 : request.method === 'POST' ? 400 : 404;
    response.writeHead(status).end(isShort ? 'process_start_time_seconds 1.5\n' : '');
  });
  const { cacheTokens, instance } = await probeServer({ url: server.url, dialect: 'vllm' }, options);
  assert.deepEqual([cacheTokens, instance], [undefined, '1.5']);
});

test('a vLLM that names only its blocks has as many tokens as they hold; one without a prefix cache, or with other names, says nothing', async () => {
  const probe = async (metrics: string) => {
    await using server = await openServer((request, response) => {
      const isMetrics = request.url === '/metrics';
      response
        .writeHead(isMetrics || request.url === '/health' ? 200 : request.method === 'POST' ? 400 : 404)
        .end(isMetrics ? metrics : '');
    });
    return (await probeServer({ url: server.url, dialect: 'vllm' }, options)).cacheTokens;
  };
  const blocks = 'block_size="16",kv_cache_size_tokens="None",num_gpu_blocks="1000",num_gpu_blocks_override="7"';
  assert.equal(await probe(`vllm:cache_config_info{${blocks}} 1.0\n`), 16_000);
  assert.equal(await probe(`vllm:cache_config_info{${blocks},enable_prefix_caching="False"} 1.0\n`), undefined);
  assert.equal(await probe('vllm:cache_config_info{block_size="None",num_gpu_blocks="None"} 1.0\n'), undefined);
  assert.equal(await probe('vllm:kv_config{tokens="16"} 1.0\n'), undefined);
});

/** Answers 404 to everything else. */
function openReplies(replies: Readonly<Record<string, unknown>>) {
  return openServer((request, response) => {
    const reply = replies[`${request.method} ${request.url}`];
    response.writeHead(reply === undefined ? 404 : 200).end(JSON.stringify(reply ?? { detail: 'Not Found' }));
  });
}
