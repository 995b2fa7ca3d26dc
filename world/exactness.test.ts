// Recorded logprobs against the engine's own scores of the same ids, and one engine's against the other's: what a trainer would recompute.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Backend } from '@millrace/engines';
import { sampling } from '@millrace/protocol';
import type { Engine } from './engines/engine-process.ts';
import { skipWithoutLlama } from './engines/llama.ts';
import { openSharedLlama, openSharedVllm } from './engines/shared-engines.ts';
import { skipWithoutVllm } from './engines/vllm.ts';
import { makeRequest, openEngineBackend, promptIds, scoreWithVllm } from './suite/ask.ts';

/** float32 and the same engine: only the order of additions differs. */
const sameEngine = 1e-3;
/** The same weights, but llama.cpp rounds what goes into each product to eight bits. */
const otherEngine = 1;

describe('exactness', { skip: skipWithoutVllm() || skipWithoutLlama(), timeout: 900_000 }, () => {
  for (const dialect of ['vllm', 'vllm-completions'] as const) {
    test(`${dialect}: every logprob is the one that the engine gives the same ids as a prompt`, async (context) => {
      await using engine = await openSharedVllm();
      const { tokens, largest, mean } = await compare(openEngineBackend(engine, dialect), engine);
      context.diagnostic(`${tokens} tokens, float32: largest difference ${largest}, mean ${mean}`);
      assert.ok(tokens > 20 && largest < sameEngine, `largest difference ${largest}`);
    });
  }

  test('llama-server: the same weights give nearly the same logprobs as vLLM', async (context) => {
    await using llama = await openSharedLlama();
    await using vllm = await openSharedVllm();
    const { tokens, largest, mean } = await compare(openEngineBackend(llama, 'llamacpp'), vllm);
    context.diagnostic(`${tokens} tokens, llama.cpp against vLLM: largest difference ${largest}, mean ${mean}`);
    assert.ok(tokens > 20 && mean < otherEngine / 4 && largest < 2 * otherEngine, `largest difference ${largest}, mean ${mean}`);
  });
});

/** Samples a few replies and scores them on a vLLM. */
async function compare(backend: Backend, judge: Pick<Engine, 'url'>) {
  const differences: number[] = [];
  const replies = await Promise.all(
    // A low seed number and short replies: none of them has a token without a logprob on llama-server.
    [1, 2, 3, 4].map((seed) => backend.generate(makeRequest({ sampling: sampling.parse({ seed }), maxTokens: 16, stopTokenIds: [2] }))),
  );
  for (const { tokenIds, logprobs } of replies) {
    const scores = await scoreWithVllm(judge, [...promptIds, ...tokenIds]);
    logprobs.forEach((logprob, i) => void differences.push(Math.abs(logprob - (scores[promptIds.length + i] ?? Number.NaN))));
  }
  const mean = differences.reduce((sum, one) => sum + one, 0) / differences.length;
  return { tokens: differences.length, largest: Math.max(...differences), mean };
}
