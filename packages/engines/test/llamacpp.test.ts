// What is specific to llama.cpp: probabilities that may be missing, a context that may be shifted, samplers that must be named.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { backendId, RolloutError, sampling } from '@millrace/protocol';
import { openFakeBackend, openFakeTokens } from '@millrace/testkit';
import { z } from 'zod';
import type { GenerateRequest } from '../src/backend.ts';
import { openOneReplyBackend } from '../src/http-backend.ts';
import { llamacppRoute } from '../src/llamacpp-wire.ts';

const tokens = await openFakeTokens();
const quiet = { log: silentLog, pace: new Pace() };

function makeRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  const signal = new AbortController().signal;
  const base = { promptJson: Buffer.from('1,2,3'), promptTokens: 3, sampling: sampling.parse({}), maxTokens: 64, stopTokenIds: [9] };
  return { ...base, sessionId: 's', requestId: 'r', signal, ...changes };
}

function parse(changes: Record<string, unknown>, tokenIds: readonly number[] = [5, 6, 9]) {
  const completion_probabilities = tokenIds.map((id) => ({ id, token: '', bytes: [], logprob: -id, top_logprobs: [] }));
  const counts = { tokens_evaluated: 3, tokens_cached: 2 + tokenIds.length, truncated: false };
  return llamacppRoute.parse(
    JSON.stringify({ tokens: tokenIds, completion_probabilities, stop_type: 'eos', ...counts, ...changes }),
    makeRequest(),
  );
}

function entry(id: number) {
  return { id, logprob: -id };
}

test('a token without a logprob refuses the reply without a retry, which would leave such tokens out, and names the alternative', () => {
  const codeOf = (left: readonly number[]) => {
    try {
      return parse({ completion_probabilities: left.map(entry) });
    } catch (error) {
      return error instanceof RolloutError ? [error.code, error.retryable] : error;
    }
  };
  for (const left of [[6, 9], [5, 9], [5, 6], []]) assert.deepEqual(codeOf(left), ['backend-refused', false]);
  for (const left of [
    [5, 6, 9, 9],
    [6, 5, 9],
  ])
    assert.deepEqual(codeOf(left), ['backend-bad-reply', true]);
  assert.throws(() => parse({ completion_probabilities: [5, 9].map(entry) }), /no logprob for token 6 at 1 \(2 of 3.*vLLM or SGLang/);
});

test('a character of several tokens has no probabilities for the first ones, and is refused', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'so 🦙🫠 it is' }), tokens });
  const backend = openOneReplyBackend(
    llamacppRoute,
    { id: backendId.parse('b1'), url: fake.url, dialect: 'llamacpp', policyVersion: 0, state: 'up' },
    quiet,
  );
  await assert.rejects(backend.generate(makeRequest()), /leaves out tokens that end inside a UTF-8 character/);
});

test('the finish reason is read from the stop type', () => {
  assert.equal(parse({ stop_type: 'limit' }, [5, 6]).finishReason, 'length');
  assert.equal(parse({ stop_type: 'word' }, [5, 6]).finishReason, 'stop');
  assert.throws(() => parse({ stop_type: 'none' }, [5, 6]), /stop type/);
});

test('tokens after a stop id are cut off', () => {
  const generation = parse({ stop_type: 'limit' }, [5, 9, 7, 9, 8]);
  assert.deepEqual([...generation.tokenIds], [5, 9]);
  assert.deepEqual([...generation.logprobs], [-5, -9]);
  assert.equal(generation.finishReason, 'stop');
});

test('a full context ends as length, a shifted one is refused', () => {
  assert.equal(parse({ truncated: true, stop_type: 'limit' }, [5, 6]).finishReason, 'length');
  assert.throws(() => parse({ truncated: true, tokens_cached: 3 }), /without --context-shift/);
  assert.throws(() => parse({ tokens_evaluated: 2 }), /a prompt of 2 tokens/);
});

test('only the requested samplers are named, and temperature always is', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
  const backend = openOneReplyBackend(
    llamacppRoute,
    { id: backendId.parse('b1'), url: fake.url, dialect: 'llamacpp', policyVersion: 0, state: 'up' },
    quiet,
  );
  const { cachedTokens } = await backend.generate(makeRequest());
  assert.equal(cachedTokens, 2);
  await backend.generate(makeRequest({ sampling: sampling.parse({ top_k: 5, min_p: 0.1, repetition_penalty: 1.1 }) }));
  assert.deepEqual(
    fake.requests.map((request) => request.sampling.samplers),
    [['temperature'], ['penalties', 'top_k', 'min_p', 'temperature']],
  );
  assert.deepEqual([fake.requests[0]?.sampling.seed, fake.requests[0]?.sampling.stop], [-1, []]);
});

// Recorded from llama-server 0.7.0 (build 11669) with a random model.
const recorded = z
  .record(z.string(), z.object({ prompt_tokens: z.int(), max_tokens: z.int(), reply: z.record(z.string(), z.unknown()) }))
  .parse(JSON.parse(readFileSync(new URL('./golden/llamacpp.json', import.meta.url), 'utf8')));

function parseRecorded(name: string) {
  const { prompt_tokens, max_tokens, reply } = recorded[name] ?? assert.fail(`no record of ${name}`);
  const request = makeRequest({ promptTokens: prompt_tokens, maxTokens: max_tokens, stopTokenIds: [151645] });
  return llamacppRoute.parse(JSON.stringify(reply), request);
}

test('recorded replies of a real llama-server are read, or refused if they must be', () => {
  const whole = parseRecorded('whole');
  assert.deepEqual([whole.tokenIds.length, whole.finishReason], [4, 'length']);
  assert.ok(whole.logprobs.every((logprob) => logprob < -9 && logprob > -15));
  const eos = parseRecorded('eos');
  assert.deepEqual([[...eos.tokenIds], eos.finishReason], [[151645], 'stop']);
  const full = parseRecorded('full');
  assert.deepEqual([full.tokenIds.length, full.finishReason], [3, 'length']);
  assert.throws(() => parseRecorded('shifted'), /without --context-shift/);
  assert.throws(() => parseRecorded('inside'), /no logprob for token \d+ at \d \(3 of 4/);
});

test('the fake llama.cpp writes the same fields as a real one', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }), tokens });
  const { head, tail } = llamacppRoute.around(makeRequest(), undefined);
  const reply = z
    .record(z.string(), z.unknown())
    .parse(await (await fetch(`${fake.url}/completion`, { method: 'POST', body: `${head}1,2,3${tail}` })).json());
  assert.deepEqual(Object.keys(reply).sort(), Object.keys(recorded.whole?.reply ?? {}).sort());
});
