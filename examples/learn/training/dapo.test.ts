// DAPO's numbers, each checked against a value computed by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isInformative, overlongPenalty, toAdvantages, toTokenTerm } from './dapo.ts';

const near = (actual: number, expected: number) => assert.ok(Math.abs(actual - expected) < 1e-5, `${actual} is not ${expected}`);

test('advantages are distances from the mean in standard deviations', () => {
  const [a = 0, b = 0, c = 0, d = 0] = toAdvantages([1, 0, 0, 1]);
  near(a, 1);
  near(b, -1);
  near(c, -1);
  near(d, 1);
  assert.deepEqual(toAdvantages([0.5, 0.5, 0.5]), [0, 0, 0]);
});

test('a group is informative only if its rewards differ', () => {
  assert.equal(isInformative([1, 1, 1]), false);
  assert.equal(isInformative([0, 0]), false);
  assert.equal(isInformative([0, 0, 1]), true);
});

test('a good token is clipped only far above, a bad one only below: clip-higher', () => {
  const term = (ratio: number, advantage: number) => toTokenTerm({ logprob: Math.log(ratio), recorded: 0, advantage });
  near(term(1.27, 1).slope, -1.27);
  assert.deepEqual({ ...term(1.29, 1), loss: 0 }, { loss: 0, slope: 0, isClipped: true });
  near(term(1.29, 1).loss, -1.28);
  near(term(0.5, 1).slope, -0.5);
  near(term(0.81, -1).slope, 0.81);
  assert.equal(term(0.79, -1).slope, 0);
  near(term(2, -1).slope, 2);
});

test('the slope of a token is the derivative of its loss', () => {
  for (const advantage of [-1.5, 0.7]) {
    for (const logprob of [-1.1, -1, -0.9]) {
      const at = (value: number) => toTokenTerm({ logprob: value, recorded: -1, advantage }).loss;
      near(toTokenTerm({ logprob, recorded: -1, advantage }).slope, (at(logprob + 1e-6) - at(logprob - 1e-6)) / 2e-6);
    }
  }
});

test('length is free up to one bound and costs 1 from another', () => {
  const bounds = { free: 10, most: 20 };
  assert.deepEqual(
    [0, 10, 15, 20, 99].map((tokens) => overlongPenalty(tokens, bounds)),
    [0, 0, -0.5, -1, -1].map((value) => (value === 0 ? -0 : value)),
  );
});
