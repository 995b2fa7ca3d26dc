// The sampling fields on every server's wire: each is sent as the server names it, or the call is refused before it is sent. What
// stopped a turn is recorded, and its tokens stay.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { backendId, RolloutError, type SamplingInput, sampling } from '@millrace/protocol';
import type { GenerateRequest } from '../src/backend.ts';
import { chatRoute } from '../src/chat.ts';
import { llamacppRoute } from '../src/llamacpp-wire.ts';
import { findUnseen } from '../src/logprobs.ts';
import { openBackend } from '../src/open-backend.ts';
import { promptIdsRoute } from '../src/prompt-ids.ts';
import { sglangRoute } from '../src/sglang-wire.ts';
import { completionsRoute, generateRoute } from '../src/vllm-wire.ts';
import { type TokenRoute, toBody } from '../src/wire.ts';

function makeRequest(given: SamplingInput, changes: Partial<GenerateRequest> = {}): GenerateRequest {
  const prompt = { promptJson: Buffer.from('1,2'), promptTokens: 2, maxTokens: 10, stopTokenIds: [2, 7] };
  return { ...prompt, sampling: sampling.parse(given), sessionId: 's', requestId: 'r', signal: new AbortController().signal, ...changes };
}

// biome-ignore lint/suspicious/noExplicitAny: a body as JSON
const bodyOf = (route: TokenRoute, request: GenerateRequest): any => JSON.parse(Buffer.concat(toBody(route, request, 'm')).toString());

const all = { stop: ['</search>'], stop_token_ids: [7], min_tokens: 3, logit_bias: { '5': -1.5 } };
const schema = { type: 'object', properties: { a: { type: 'integer' } } };

test('vLLM gets every field on both routes, and makes text only for stop strings', () => {
  const request = makeRequest({ ...all, structured_outputs: { json: schema } });
  const wanted = {
    stop: ['</search>'],
    stop_token_ids: [2, 7],
    min_tokens: 3,
    logit_bias: { '5': -1.5 },
    structured_outputs: { json: schema },
  };
  const { sampling_params: params } = bodyOf(generateRoute, request);
  assert.deepEqual({ ...params, ...wanted }, params);
  assert.deepEqual([params.detokenize, params.include_stop_str_in_output], [true, true]);
  const completions = bodyOf(completionsRoute, request);
  assert.deepEqual({ ...completions, ...wanted }, completions);
  const plain = bodyOf(generateRoute, makeRequest({})).sampling_params;
  assert.deepEqual([plain.detokenize, plain.stop, plain.min_tokens, plain.logit_bias], [false, undefined, 0, undefined]);
});

test('a minimum above what the context has left becomes what is left', () => {
  const request = makeRequest({ min_tokens: 8 }, { maxTokens: 5 });
  assert.equal(bodyOf(generateRoute, request).sampling_params.min_tokens, 5);
  assert.equal(bodyOf(sglangRoute, request).sampling_params.min_new_tokens, 5);
});

test('SGLang gets them under its names; it would stop at strings before the minimum, so both together are refused', () => {
  const ask = (given: SamplingInput) => bodyOf(sglangRoute, makeRequest(given)).sampling_params;
  assert.deepEqual(
    [ask({ stop: ['x'] }).stop, ask({ min_tokens: 2 }).min_new_tokens, ask({ logit_bias: { '5': 1 } }).logit_bias],
    [['x'], 2, { '5': 1 }],
  );
  assert.equal(ask({ structured_outputs: { json: schema } }).json_schema, JSON.stringify(schema));
  assert.equal(ask({ structured_outputs: { regex: '[0-9]' } }).regex, '[0-9]');
  assert.equal(ask({ structured_outputs: { grammar: 'root ::= "a"' } }).ebnf, 'root ::= "a"');
  const { regex } = ask({ structured_outputs: { choice: ['1+1 (a|b)', 'no.'] } });
  for (const [text, isOne] of [
    ['1+1 (a|b)', true],
    ['no.', true],
    ['not', false],
    ['1+1 a', false],
  ] as const)
    assert.equal(new RegExp(`^${regex}$`).test(text), isOne, text);
  assert.throws(() => ask({ stop: ['x'], min_tokens: 2 }), isRefused('sampling.stop', 'SGLang'));
});

test('llama.cpp gets biases and grammars; what it has not is refused with the reason', () => {
  const ask = (given: SamplingInput) => bodyOf(llamacppRoute, makeRequest(given));
  assert.deepEqual(ask({ logit_bias: { '5': -1.5 } }).logit_bias, [[5, -1.5]]);
  assert.deepEqual(ask({ stop: ['x'] }).stop, [], 'it would leave out the probabilities of these tokens');
  assert.deepEqual(ask({ structured_outputs: { json: schema } }).json_schema, schema);
  assert.equal(ask({ structured_outputs: { choice: ['say "a\\b"\n', 'no'] } }).grammar, 'root ::= "say \\"a\\\\b\\"\\n" | "no"');
  assert.throws(() => ask({ min_tokens: 1 }), isRefused('sampling.min_tokens', 'llama.cpp'));
  assert.throws(() => ask({ structured_outputs: { regex: 'a' } }), isRefused('sampling.structured_outputs.regex', 'llama.cpp'));
});

test('a chat route gets what OpenAI has, and a trainer’s own server only numbers; the rest is refused', () => {
  const chat = (given: SamplingInput) => bodyOf(chatRoute, makeRequest(given));
  assert.deepEqual([chat({ stop: ['x'] }).stop, chat({ logit_bias: { '5': 1 } }).logit_bias], [['x'], { '5': 1 }]);
  assert.deepEqual(chat({ structured_outputs: { json: schema } }).response_format.json_schema.schema, schema);
  assert.equal('stop' in chat({}), false);
  for (const given of [{ min_tokens: 1 }, { structured_outputs: { regex: 'a' } }, { structured_outputs: { grammar: 'root ::= "a"' } }])
    assert.throws(() => chat(given), isRefused('sampling.', 'a chat-only server'));
  const own = (given: SamplingInput) => bodyOf(promptIdsRoute, makeRequest(given));
  assert.equal(own({ min_tokens: 3 }).min_tokens, 3);
  for (const given of [{ stop: ['x'] }, { logit_bias: { '5': 1 } }, { structured_outputs: { choice: ['a'] } }])
    assert.throws(() => own(given), isRefused('sampling.', 'a server with only POST /generate'));
});

test('a vLLM that would ignore a structure is not asked for one', async () => {
  const record = { id: backendId.parse('old'), url: 'http://127.0.0.1:9', dialect: 'vllm', policyVersion: 0, state: 'up' } as const;
  const ask = (version: string) =>
    openBackend({ ...record, probe: { version, atMs: 0 } }, { log: silentLog, pace: new Pace() }).generate(
      makeRequest({ structured_outputs: { choice: ['a'] } }),
    );
  for (const old of ['0.10.2', '0.9.0.1', '0.4.3']) await assert.rejects(ask(old), isRefused('sampling.structured_outputs', `vLLM ${old}`));
  // Nothing listens there: the call was sent.
  for (const later of ['0.11.0', '0.32.0', '1.0.0', 'dev'])
    await assert.rejects(ask(later), (error) => error instanceof RolloutError && error.code === 'backend-failed');
});

test('what stopped a turn is what the server says, or the stop token that it ends with', () => {
  const choice = (stop_reason: unknown, ids: readonly number[]) => ({
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        stop_reason,
        token_ids: ids,
        logprobs: { content: ids.map((token_id) => ({ token_id, logprob: -1 })) },
      },
    ],
  });
  const read = (reason: unknown, ids: readonly number[]) => generateRoute.parse(JSON.stringify(choice(reason, ids)), makeRequest(all));
  assert.deepEqual([read('</search>', [4, 9]).stoppedBy, [...read('</search>', [4, 9]).tokenIds]], ['</search>', [4, 9]]);
  assert.equal(read(7, [4, 7]).stoppedBy, 7);
  assert.equal(read(null, [4, 2]).stoppedBy, 2, 'the end of the model');
  assert.equal(read(null, [4, 9]).stoppedBy, undefined);
  const meta = {
    finish_reason: { type: 'stop', matched: '</search>' },
    output_token_logprobs: [[-1, 4, null]],
    prompt_tokens: 2,
    completion_tokens: 1,
  };
  assert.equal(sglangRoute.parse(JSON.stringify({ output_ids: [4], meta_info: meta }), makeRequest(all)).stoppedBy, '</search>');
});

test('a reply of llama.cpp ends with the token that completes a stop string, in whatever bytes its tokens are', () => {
  const pieces: readonly (readonly number[])[] = [[...Buffer.from('a </se')], [0xc3], [0xa9, 0x3e], [...Buffer.from(' more')]];
  const reply = {
    tokens: [10, 11, 12, 13],
    completion_probabilities: pieces.map((bytes, at) => ({ id: 10 + at, bytes, logprob: -at })),
    stop_type: 'limit',
  };
  const read = (stop: string[], changes = {}) => llamacppRoute.parse(JSON.stringify(reply), makeRequest({ stop }, changes));
  const found = read(['never', '</seé>']);
  assert.deepEqual(
    [[...found.tokenIds], [...found.logprobs], found.finishReason, found.stoppedBy],
    [[10, 11, 12], [0, -1, -2], 'stop', '</seé>'],
  );
  assert.deepEqual([...read(['é>', '</s']).tokenIds], [10], 'the string that is complete first');
  assert.equal(read(['never']).finishReason, 'length');
  const token = read(['more'], { stopTokenIds: [12] });
  assert.deepEqual([[...token.tokenIds], token.stoppedBy], [[10, 11, 12], 12], 'a stop token before the string');
});

test('the fields that the logprobs do not show are known for each engine and mode', () => {
  const given = sampling.parse({ ...all, temperature: 0.5, top_p: 0.9, structured_outputs: { choice: ['a'] } });
  assert.deepEqual(findUnseen({ dialect: 'vllm', logprobsMode: 'processed' }, given), []);
  assert.deepEqual(findUnseen({ dialect: 'vllm', logprobsMode: 'raw' }, given), ['temperature', 'min_tokens', 'logit_bias', 'top_p']);
  assert.deepEqual(findUnseen({ dialect: 'sglang' }, given), ['top_p']);
  assert.deepEqual(findUnseen({ dialect: 'llamacpp' }, given), ['temperature', 'min_tokens', 'logit_bias', 'structured_outputs', 'top_p']);
  assert.equal(findUnseen({ dialect: 'vllm' }, given), undefined);
  assert.deepEqual(findUnseen({ dialect: 'vllm' }, sampling.parse({ stop: ['x'], stop_token_ids: [7], logit_bias: { '5': 0 } })), []);
});

function isRefused(field: string, server: string) {
  return (error: unknown) => {
    assert.ok(error instanceof RolloutError && error.code === 'backend-refused');
    assert.ok(error.message.startsWith(`${server}`) && error.message.includes(`cannot honour ${field}`), error.message);
    return true;
  };
}
