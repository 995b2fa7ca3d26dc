// One training step: rewarded tokens become more likely, unrewarded ones less, and an uninformative group changes nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copyNetwork, logprobsAt, makeNetwork, type Network } from '../model/network.ts';
import { makeRandom } from '../model/random.ts';
import { Learner, type Sample } from './learner.ts';

const shape = { vocabulary: 11, positions: 16, width: 8, heads: 2, layers: 1 };
const base = makeNetwork(shape, makeRandom('learner'));
const places = [3, 4];
const logprobOf = (network: Network, ids: readonly number[]) => logprobsAt(network, ids, { places }).data.reduce((a, b) => a + b, 0);

function makeSample(ids: readonly number[], reward: number): Sample {
  return { tokenIds: Int32Array.from(ids), places, recorded: [...logprobsAt(base, ids, { places }).data], reward };
}

function makeLearner(): Learner {
  return new Learner(copyNetwork(base), { rate: 0.003, epochs: 2, minibatch: 4, random: makeRandom('order') });
}

test('rewarded tokens become more likely, and unrewarded ones less likely', async () => {
  const learner = makeLearner();
  const good = [1, 2, 3, 4, 5];
  const bad = [1, 2, 3, 6, 7];
  await learner.update([[makeSample(good, 1), makeSample(bad, 0)]]);
  assert.ok(logprobOf(learner.network, good) > logprobOf(base, good));
  assert.ok(logprobOf(learner.network, bad) < logprobOf(base, bad));
});

test('the same seed and the same samples give the same weights', async () => {
  const [one, other] = [makeLearner(), makeLearner()];
  for (const learner of [one, other]) await learner.update([[makeSample([1, 2, 3, 4, 5], 1), makeSample([1, 2, 3, 6, 7], 0)]]);
  assert.deepEqual(one.network.tokens.data, other.network.tokens.data);
});

test('a group whose rewards are all equal changes nothing', async () => {
  const learner = makeLearner();
  const { loss, clipped } = await learner.update([[makeSample([1, 2, 3, 4, 5], 0.5), makeSample([1, 2, 3, 6, 7], 0.5)]]);
  assert.deepEqual(learner.network.tokens.data, base.tokens.data);
  assert.equal(Math.abs(loss) + clipped, 0);
});
