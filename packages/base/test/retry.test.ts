// Retries: only for retryable errors, up to the limit, and never after the signal aborts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import type { Clock } from '../src/clock.ts';
import { retry } from '../src/retry.ts';

/** A clock whose pauses end immediately and are recorded. */
function makeClock(pauses: number[]): Clock {
  return {
    now: () => 0,
    monotonic: () => 0,
    after(ms, callback) {
      pauses.push(ms);
      queueMicrotask(callback);
      return () => {};
    },
  };
}

const failed = () => new RolloutError('backend-failed', 'down');

test('a retryable failure is retried, each pause twice as long as the one before', async () => {
  const pauses: number[] = [];
  const seen: number[] = [];
  const work = async (failures: number) => {
    seen.push(failures);
    if (failures < 3) throw failed();
    return 'done';
  };
  assert.equal(await retry(work, { attempts: 4, delayMs: 10, clock: makeClock(pauses) }), 'done');
  assert.deepEqual(seen, [0, 1, 2, 3]);
  assert.deepEqual(pauses, [10, 20, 40]);
});

test('after the last attempt the last error is thrown', async () => {
  let calls = 0;
  const work = () => Promise.reject(new RolloutError('backend-failed', `down ${++calls}`));
  await assert.rejects(retry(work, { attempts: 3, delayMs: 1, clock: makeClock([]) }), /down 3/);
});

for (const error of [new RolloutError('backend-refused', 'no'), new Error('a bug')]) {
  test(`an error that is not retryable is thrown immediately: ${error.name}`, async () => {
    let calls = 0;
    const work = () => {
      calls += 1;
      return Promise.reject(error);
    };
    await assert.rejects(retry(work, { attempts: 3, delayMs: 1, clock: makeClock([]) }), error);
    assert.equal(calls, 1);
  });
}

test('an abort ends the pause with its reason', async () => {
  const controller = new AbortController();
  const clock: Clock = { ...makeClock([]), after: () => () => {} };
  const work = async () => {
    queueMicrotask(() => queueMicrotask(() => controller.abort(new Error('enough'))));
    throw failed();
  };
  await assert.rejects(retry(work, { attempts: 3, delayMs: 1, clock, signal: controller.signal }), /enough/);
});

test('nothing is tried once the signal has aborted', async () => {
  const work = () => assert.fail('tried');
  await assert.rejects(
    retry(work, { attempts: 3, delayMs: 1, clock: makeClock([]), signal: AbortSignal.abort(new Error('enough')) }),
    /enough/,
  );
});
