// The policy's server as Millrace's own vLLM adapter sees it: true log-probabilities, seeds, stops, concurrent requests, and explicit refusals.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { type GenerateRequest, openVllmBackend } from '@millrace/engines';
import { openConversation } from '@millrace/model';
import { backendId, sampling } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit/plain';
import { logSoftmax } from '../model/matrix.ts';
import { forward, logprobsAt, makeNetwork, toLogits } from '../model/network.ts';
import { makeRandom } from '../model/random.ts';
import { callClose, callOpen, idOf, makeTokenizerFiles, marks, question, vocabularySize } from '../model/vocabulary.ts';
import { PolicyServer } from './policy-server.ts';

const network = makeNetwork({ vocabulary: vocabularySize, positions: 48, width: 16, heads: 2, layers: 1 }, makeRandom('server'));
const promptIds = [marks.user, 'Who ', 'is ', marks.end, marks.assistant].map(idOf);

function makeRequest(params: Record<string, unknown> = {}, more: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptJson: Buffer.from(promptIds.join()),
    promptTokens: promptIds.length,
    sampling: sampling.parse({ seed: 7, ...params }),
    maxTokens: 12,
    stopTokenIds: [idOf(marks.end)],
    sessionId: 'one',
    requestId: 'one-1',
    signal: new AbortController().signal,
    ...more,
  };
}

async function openBed() {
  const server = await PolicyServer.open(1, network);
  const { url } = server;
  const record = { id: backendId.parse('policy'), url, dialect: 'vllm', policyVersion: 3, logprobsMode: 'processed', state: 'up' } as const;
  return {
    server,
    backend: openVllmBackend(record, { log: silentLog, pace: new Pace() }),
    url,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

test('the log-probabilities are those of the network for the sampled tokens', async () => {
  await using bed = await openBed();
  const { tokenIds, logprobs, finishReason } = await bed.backend.generate(makeRequest());
  assert.equal(finishReason, 'length');
  const own = logprobsAt(network, [...promptIds, ...tokenIds], { places: Array.from(tokenIds, (_, i) => promptIds.length + i) });
  assert.deepEqual(logprobs, Float32Array.from(own.data));
});

test('a temperature changes what is sampled and the log-probabilities with it', async () => {
  await using bed = await openBed();
  const { tokenIds, logprobs } = await bed.backend.generate(makeRequest({ temperature: 2 }, { maxTokens: 1 }));
  const outputs = forward(network, promptIds);
  const logits = toLogits(network, outputs).data.subarray(-vocabularySize);
  assert.equal(logprobs[0], Math.fround(logSoftmax(logits.map((logit) => logit / 2))[tokenIds[0] ?? 0] ?? 0));
});

test('the same seed gives the same tokens and another seed gives others, in concurrent requests', async () => {
  await using bed = await openBed();
  const seeds = [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3];
  const texts = await Promise.all(seeds.map(async (seed) => (await bed.backend.generate(makeRequest({ seed }))).tokenIds.join()));
  assert.equal(new Set(texts).size, 3);
  assert.deepEqual(texts.slice(0, 3), texts.slice(3, 6));
});

test('after a swap the new weights are sampled', async () => {
  await using bed = await openBed();
  const other = makeNetwork(network.shape, makeRandom('other'));
  await bed.backend.generate(makeRequest());
  bed.server.swap(other);
  const { tokenIds, logprobs } = await bed.backend.generate(makeRequest());
  const own = logprobsAt(other, [...promptIds, ...tokenIds], { places: Array.from(tokenIds, (_, i) => promptIds.length + i) });
  assert.deepEqual(logprobs, Float32Array.from(own.data));
});

test('a stop token ends the turn and is part of it', async () => {
  await using bed = await openBed();
  const all = Array.from({ length: vocabularySize }, (_, id) => id);
  const { tokenIds, finishReason } = await bed.backend.generate(makeRequest({}, { stopTokenIds: all }));
  assert.deepEqual([tokenIds.length, finishReason], [1, 'stop']);
});

test('unsupported parameters are refused, never ignored', async () => {
  await using bed = await openBed();
  const refused = (params: Record<string, unknown>, what: RegExp) =>
    assert.rejects(bed.backend.generate(makeRequest(params)), (error: Error) => what.test(error.message));
  await refused({ top_p: 0.9 }, /top_p/);
  await refused({ top_k: 5 }, /top_k/);
  await refused({ temperature: 0 }, /temperature/);
  await refused({ repetition_penalty: 1.1 }, /repetition_penalty/);
  await assert.rejects(bed.backend.generate(makeRequest({}, { maxTokens: 44 })), {
    details: { reason: 'context-length', context_tokens: 48 },
  });
  const nonsense = await fetch(`${bed.url}/inference/v1/generate`, { method: 'POST', body: '{"token_ids": [99999]' });
  assert.equal(nonsense.status, 400);
  assert.equal((await fetch(`${bed.url}/v1/completions`, { method: 'POST' })).status, 404);
});

test("Millrace's own loader reads the tokenizer folder and tokenises it word by word", async () => {
  await using folder = await makeTempFolder('mr-model');
  for (const [name, text] of Object.entries(makeTokenizerFiles())) await writeFile(join(folder.path, name), text);
  const conversation = await openConversation(folder.path, { toolParser: 'fenced' });
  const opening = conversation.openingIds([{ role: 'user', content: question('barn') }], []);
  assert.deepEqual([...opening.tokenIds], [marks.user, 'Who ', 'is ', 'in ', 'the ', 'barn', '?', marks.end, marks.assistant].map(idOf));
  const answer = conversation.deltaIds([{ role: 'tool', content: 'fox' }]);
  assert.deepEqual([...answer.tokenIds], [marks.tool, 'fox', marks.end, marks.assistant].map(idOf));
  const said = Int32Array.from([...callOpen, 'barn', callClose, marks.end].map(idOf));
  const { calls } = await conversation.readTurn(conversation.decodeTurn(said), []);
  assert.deepEqual(calls[0]?.arguments, { command: './look barn' });
  assert.equal(conversation.tokenizer.decode(conversation.tokenizer.encodePlain('Zürich <|end|>\n')), 'Zürich <|end|>\n');
});
