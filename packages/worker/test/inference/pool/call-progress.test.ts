// What is reported of running calls: the age of the oldest, the time since the last token, and tokens per second.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '@millrace/testkit/plain';
import { CallProgress } from '../../../src/inference/pool/call-progress.ts';

test('a slow engine is seen by the age of its oldest call and its last token, and an idle one reports nothing', () => {
  const clock = new FakeClock();
  const progress = new CallProgress(clock);
  assert.equal(progress.read(), undefined);
  const first = progress.start();
  clock.advance(60_000);
  assert.deepEqual(progress.read(), { oldest_call_ms: 60_000, last_token_ms: null, tokens_per_s: 0 });
  const second = progress.start();
  progress.addTokens(second, 20);
  clock.advance(10_000);
  assert.deepEqual(progress.read(), { oldest_call_ms: 70_000, last_token_ms: 10_000, tokens_per_s: 2 });
  progress.end(second);
  assert.deepEqual([progress.calls, progress.read()?.last_token_ms], [1, null]);
  progress.end(first);
  assert.deepEqual([progress.calls, progress.read()], [0, undefined]);
});
