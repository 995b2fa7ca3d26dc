// Tokens per second follow the counter within about ten seconds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '@millrace/testkit/plain';
import { TokenRate } from '../../../src/inference/pool/token-rate.ts';

test('the rate is that of the last ten seconds, and falls to 0 when nothing is sampled', () => {
  const clock = new FakeClock();
  const rate = new TokenRate(clock);
  assert.equal(rate.read(0), 0);
  let total = 0;
  const run = (seconds: number, perSecond: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1000);
      total += perSecond;
      rate.read(total);
    }
    return rate.read(total);
  };
  assert.equal(run(3, 50), 50);
  assert.equal(run(30, 200), 200);
  assert.equal(run(5, 0), 100);
  assert.equal(run(20, 0), 0);
});

test('a reading after a long pause covers the whole pause', () => {
  const clock = new FakeClock();
  const rate = new TokenRate(clock);
  clock.advance(60_000);
  assert.equal(rate.read(600), 10);
});
