// A stage runs as many rollouts as it has slots, and always frees them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '@millrace/testkit/plain';
import { Stage } from '../../src/pipeline/attempt/stage.ts';

const never = new AbortController().signal;

test('a stage runs as many at once as it has slots, and passes the others the time that they waited', async () => {
  const clock = new FakeClock();
  const stage = new Stage('init', 1, { clock });
  const first = Promise.withResolvers<void>();
  const waits: number[] = [];
  const running = [
    stage.run(() => first.promise, { signal: never }),
    stage.run(async (waitedMs) => void waits.push(waitedMs), { signal: never }),
  ];
  assert.deepEqual(stage.report, { active: 1, waiting: 1, slots: 1 });
  clock.advance(700);
  first.resolve();
  await Promise.all(running);
  assert.deepEqual(waits, [700]);
  assert.deepEqual(stage.report, { active: 0, waiting: 0, slots: 1 });
});

test('work that ignores its signal still frees its slot', async () => {
  const stage = new Stage('run', 1);
  const abort = new AbortController();
  const stuck = stage.run(() => new Promise(() => {}), { signal: abort.signal });
  abort.abort(new Error('cancelled'));
  await assert.rejects(stuck, /cancelled/);
  assert.equal(stage.free, 1);
});

test('work that throws frees its slot', async () => {
  const stage = new Stage('evaluate', 1);
  await assert.rejects(
    stage.run(() => Promise.reject(new Error('broken')), { signal: never }),
    /broken/,
  );
  assert.equal(stage.free, 1);
});
