// Claims about taking bursts apart.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pace } from '../../src/base/pace.ts';

test('all who ask go on, in order, and a timer that comes due meanwhile does not wait for the last of them', async () => {
  const pace = new Pace();
  const order: (number | 'timer')[] = [];
  const busy = (ms: number) => {
    for (const end = performance.now() + ms; performance.now() < end; );
  };
  setTimeout(() => order.push('timer'), 1);
  await Promise.all(
    Array.from({ length: 20 }, async (_, number) => {
      await pace.turn();
      busy(1);
      order.push(number);
    }),
  );
  assert.deepEqual(
    order.filter((entry) => entry !== 'timer'),
    Array.from({ length: 20 }, (_, number) => number),
  );
  assert.ok(order.indexOf('timer') < 10, `the timer came at ${order.indexOf('timer')}`);
});
