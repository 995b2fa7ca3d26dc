// The network is correct: its gradients match finite differences, and sampling token by token is bit-identical to training.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tape } from './matrix.ts';
import { copyNetwork, forward, logprobsAt, makeNetwork, openCache, weightsOf } from './network.ts';
import { makeRandom } from './random.ts';

const shape = { vocabulary: 11, positions: 16, width: 8, heads: 2, layers: 2 };
const tokenIds = [3, 1, 4, 1, 5, 9, 2, 6];
const places = [2, 3, 6, 7];
const factors = [0.7, -1.3, 0.4, 2.1];

test('every gradient matches finite differences', () => {
  const network = makeNetwork(shape, makeRandom('gradients'));
  const loss = () => logprobsAt(network, tokenIds, { places }).data.reduce((sum, logprob, i) => sum + (factors[i] ?? 0) * logprob, 0);
  const tape = new Tape();
  const logprobs = logprobsAt(network, tokenIds, { places, tape });
  logprobs.grad.set(factors);
  tape.back();
  for (const [index, { data, grad }] of weightsOf(network).entries()) {
    for (let i = 0; i < data.length; i++) {
      const kept = data[i] ?? 0;
      const h = 1e-5;
      data[i] = kept + h;
      const above = loss();
      data[i] = kept - h;
      const slope = (above - loss()) / (2 * h);
      data[i] = kept;
      assert.ok(Math.abs(slope - (grad[i] ?? 0)) < 1e-6, `weight ${i} of matrix ${index}: ${grad[i]} where the loss has ${slope}`);
    }
  }
});

test('computing token by token with a cache is bit-identical to computing all tokens at once', () => {
  const network = makeNetwork(shape, makeRandom('cache'));
  const whole = forward(network, tokenIds);
  const cache = openCache(network);
  const parts = [tokenIds.slice(0, 3), ...tokenIds.slice(3).map((id) => [id])].map((ids) => forward(network, ids, { cache }));
  assert.deepEqual(
    parts.flatMap(({ data }) => [...data]),
    [...whole.data],
  );
});

test('a copy does not change with its original', () => {
  const network = makeNetwork(shape, makeRandom('copy'));
  const copy = copyNetwork(network);
  network.tokens.data.fill(0);
  assert.notDeepEqual(forward(copy, tokenIds).data, forward(network, tokenIds).data);
});

test('a text that is longer than the context is refused', () => {
  const network = makeNetwork(shape, makeRandom('context'));
  assert.throws(() => forward(network, new Int32Array(17)), /17 tokens in a context of 16/);
});
