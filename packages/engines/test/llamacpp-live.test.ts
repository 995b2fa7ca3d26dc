// The llama.cpp adapter against a real llama-server with a tiny random model: the fake behaves as the real one does.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { Ledger, openTokenizer } from '@millrace/model';
import { backendId, RolloutError, sampling } from '@millrace/protocol';
import { type LlamaServer, makeRandom, openLlamaServer, qwen3Folder, skipWithoutLlamaServer } from '@millrace/testkit';
import { Agent } from 'undici';
import { z } from 'zod';
import { alphabet, makeText } from '../../model/test/random-text.ts';
import type { Backend, GenerateRequest } from '../src/backend.ts';
import { openOneReplyBackend } from '../src/http-backend.ts';
import { llamacppRoute } from '../src/llamacpp-wire.ts';

const skip = skipWithoutLlamaServer();
const contextTokens = 1024;
const endOfTurnId = 151645;
const greedy = sampling.parse({ temperature: 0 });
const seeded = sampling.parse({ seed: 11 });

describe('a backend: a real llama-server', { skip }, () => {
  const dispatcher = new Agent();
  let server: LlamaServer;
  let backend: Backend;

  before(async () => {
    server = await openLlamaServer({ contextTokens });
    const record = { id: backendId.parse('b1'), url: server.url, dialect: 'llamacpp', policyVersion: 3, state: 'up' } as const;
    backend = openOneReplyBackend(llamacppRoute, record, { dispatcher, log: silentLog, pace: new Pace() });
  });
  after(async () => {
    await dispatcher.close();
    await server?.[Symbol.asyncDispose]();
  });

  test('ids and logprobs come back one for one, as probabilities of a real distribution', async () => {
    const { tokenIds, logprobs, finishReason } = await backend.generate(makeRequest({ sampling: seeded, maxTokens: 40 }));
    assert.ok(tokenIds.length > 0 && tokenIds.length <= 40);
    assert.equal(logprobs.length, tokenIds.length);
    assert.equal(finishReason, tokenIds.at(-1) === endOfTurnId ? 'stop' : 'length');
    assert.ok(logprobs.every((logprob) => logprob < 0 && logprob > -30));
  });

  test('the probabilities of the likeliest tokens sum to about one, and the sampled token has its own of them', async () => {
    const body = { prompt: [...promptIds], n_predict: 1, temperature: 1, samplers: ['temperature'], seed: 5, n_probs: 20_000 };
    const answer = await fetch(`${server.url}/completion`, { method: 'POST', body: JSON.stringify({ ...body, return_tokens: true }) });
    const reply = z
      .object({ completion_probabilities: z.array(z.object({ id: z.int(), top_logprobs: z.array(entry) })) })
      .parse(await answer.json());
    const top = reply.completion_probabilities[0]?.top_logprobs ?? [];
    const sum = top.reduce((total, { logprob }) => total + Math.exp(logprob), 0);
    assert.ok(sum > 0.95 && sum <= 1.001, `${sum} over ${top.length} tokens`);
    const whole = new Map(top.map(({ id, logprob }) => [id, logprob]));
    const { tokenIds, logprobs } = await backend.generate(makeRequest({ sampling: sampling.parse({ seed: 5 }), maxTokens: 1 }));
    assert.equal(tokenIds[0], reply.completion_probabilities[0]?.id);
    assert.ok(Math.abs((whole.get(tokenIds[0] ?? -1) ?? 0) - (logprobs[0] ?? 0)) < 1e-3);
  });

  test('greedy sampling gives the same tokens every time, each the likeliest', async () => {
    const [first, second] = [
      await backend.generate(makeRequest({ sampling: greedy })),
      await backend.generate(makeRequest({ sampling: greedy })),
    ];
    assert.ok(first.tokenIds.length > 1);
    assert.deepEqual(first.tokenIds, second.tokenIds);
    for (const [i, logprob] of first.logprobs.entries()) assert.ok(Math.abs(logprob - (second.logprobs[i] ?? 0)) < 0.05);
  });

  test('the same seed gives the same tokens, and another gives others', async () => {
    const generate = async (seed: number) => (await backend.generate(makeRequest({ sampling: sampling.parse({ seed }) }))).tokenIds.join();
    assert.equal(await generate(1), await generate(1));
    assert.notEqual(await generate(1), await generate(2));
  });

  test('the turns of a ledger continue from the cached ids', async () => {
    const ledger = new Ledger();
    ledger.appendPrompt({ tokenIds: Array.from({ length: 200 }, (_, i) => 1000 + i), text: '', messages: [] });
    for (let turn = 0; turn < 3; turn++) {
      const { promptJson, length: promptTokens } = ledger;
      const generation = await backend.generate(makeRequest({ promptJson, promptTokens, sampling: greedy, maxTokens: 20 }));
      if (turn > 0) assert.ok((generation.cachedTokens ?? 0) >= promptTokens - 20, `${generation.cachedTokens} of ${promptTokens} cached`);
      const rest = { text: '', messages: [], backend: backend.id, policyVersions: { first: 0, last: 0 }, retries: 0 };
      ledger.appendSampled({ ...generation, ...rest });
      ledger.appendObservation({ tokenIds: [198, 9707, turn], text: '', messages: [] });
    }
    assert.equal(ledger.turn, 3);
  });

  test('a turn that reaches the limit ends as length', async () => {
    const short = await backend.generate(makeRequest({ sampling: greedy, maxTokens: 3 }));
    assert.deepEqual([short.tokenIds.length, short.finishReason], [3, 'length']);
  });

  test('the end-of-turn id ends the turn, is the last id and has a logprob', async () => {
    for (let seed = 1; seed < 50; seed++) {
      const { tokenIds, finishReason } = await backend.generate(makeRequest({ sampling: sampling.parse({ seed }), maxTokens: 60 }));
      assert.equal(tokenIds.indexOf(endOfTurnId), finishReason === 'stop' ? tokenIds.length - 1 : -1);
      if (finishReason === 'stop') return;
    }
    assert.fail('none of fifty turns ended');
  });

  test('every sampler of a request is accepted', async () => {
    const all = { temperature: 0.7, top_p: 0.9, top_k: 50, min_p: 0.01, repetition_penalty: 1.1, presence_penalty: 0.2 };
    const generation = await backend.generate(makeRequest({ sampling: sampling.parse({ ...all, frequency_penalty: 0.1, seed: 3 }) }));
    assert.equal(generation.logprobs.length, generation.tokenIds.length);
  });

  test('a context that is too long is backend-refused, with details that name the reason', async () => {
    const tokenIds = new Array(contextTokens + 10).fill(9707);
    const request = makeRequest({ promptJson: Buffer.from(tokenIds.join()), promptTokens: tokenIds.length });
    await assert.rejects(backend.generate(request), (error) => {
      return error instanceof RolloutError && error.code === 'backend-refused' && error.details?.reason === 'context-length';
    });
  });

  test('a cut during a turn ends the call as an abort without tokens, and frees the slot', async () => {
    for (let seed = 1; ; seed++) {
      const cut = new AbortController();
      const call = backend.generate(makeRequest({ sampling: sampling.parse({ seed }), maxTokens: 900, cut: cut.signal }));
      await waitForBusySlot(server.url, call);
      cut.abort();
      const partial = await call;
      if (partial.finishReason === 'stop') continue; // it ended before the cut
      assert.deepEqual([partial.tokenIds.length, partial.finishReason], [0, 'abort']);
      break;
    }
    const all = await Promise.all(Array.from({ length: 8 }, () => backend.generate(makeRequest({ sampling: greedy, maxTokens: 4 }))));
    assert.ok(all.every(({ tokenIds }) => tokenIds.length > 0));
  });

  test('an abort throws its reason at once', async () => {
    const controller = new AbortController();
    const call = backend.generate(makeRequest({ maxTokens: 900, signal: controller.signal }));
    controller.abort(new Error('enough'));
    await assert.rejects(call, /enough/);
  });

  test('many calls at once each get their own answer', async () => {
    const alone: string[] = [];
    const request = (i: number) =>
      makeRequest({ promptJson: Buffer.from(`9707,${1000 + i}`), promptTokens: 2, sampling: greedy, maxTokens: 1 });
    for (let i = 0; i < 8; i++) alone.push((await backend.generate(request(i))).tokenIds.join());
    const together = await Promise.all(alone.map((_, i) => backend.generate(request(i))));
    assert.deepEqual(
      together.map(({ tokenIds }) => tokenIds.join()),
      alone,
    );
    assert.ok(new Set(alone).size > 1);
  });

  test('its tokenizer, which is written in C++, gives the same ids as ours', async () => {
    const tokenizer = await openTokenizer(qwen3Folder());
    const readme = readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8');
    // llama.cpp does not compose characters as the model's own files require, and receives half of a surrogate pair as another letter.
    const pieces = alphabet.filter((piece) => piece.isWellFormed() && piece === piece.normalize('NFC'));
    const random = makeRandom(3);
    for (const content of [readme, ...Array.from({ length: 20 }, () => makeText(random, pieces, 200).normalize('NFC'))]) {
      const answer = await fetch(`${server.url}/tokenize`, { method: 'POST', body: JSON.stringify({ content, parse_special: true }) });
      const { tokens } = z.object({ tokens: z.array(z.int()) }).parse(await answer.json());
      assert.deepEqual(tokens, [...tokenizer.encode(content)], content.slice(0, 80));
    }
  });
});

const promptIds = [151644, 872, 198, 9707];
const entry = z.object({ id: z.int(), logprob: z.number() });

/** Until the server reports that it has started, or the call has ended. */
async function waitForBusySlot(url: string, call: Promise<unknown>): Promise<void> {
  let isDone = false;
  void call.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const slots = z.array(z.looseObject({ is_processing: z.boolean() })).parse(await (await fetch(`${url}/slots`)).json());
    if (slots.some(({ is_processing }) => is_processing)) return;
  }
}

function makeRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptJson: Buffer.from(promptIds.join()),
    promptTokens: promptIds.length,
    sampling: sampling.parse({}),
    maxTokens: 30,
    stopTokenIds: [endOfTurnId],
    sessionId: 'rollout-1',
    requestId: 'request-1',
    signal: new AbortController().signal,
    ...changes,
  };
}
