// Slots: order, release and cancellation.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Slots } from '../src/slots.ts';

const never = new AbortController().signal;

test('slots are handed out first come, first served', async () => {
  const slots = new Slots(1);
  const held = await slots.acquire({ signal: never });
  const order: number[] = [];
  const waits = [1, 2, 3].map(async (number) => {
    using _slot = await slots.acquire({ signal: never });
    order.push(number);
  });
  assert.equal(slots.waiting, 3);
  held[Symbol.dispose]();
  await Promise.all(waits);
  assert.deepEqual(order, [1, 2, 3]);
  assert.equal(slots.active, 0);
});

test('a slot disposed twice is freed once', async () => {
  const slots = new Slots(2);
  const [first] = [await slots.acquire({ signal: never }), await slots.acquire({ signal: never })];
  first?.[Symbol.dispose]();
  first?.[Symbol.dispose]();
  assert.equal(slots.free, 1);
});

test('a caller that stops waiting leaves the line, and the slot goes to the next', async () => {
  const slots = new Slots(1);
  const held = await slots.acquire({ signal: never });
  const gone = new AbortController();
  const left = assert.rejects(slots.acquire({ signal: gone.signal }), /left/);
  const next = slots.acquire({ signal: never });
  gone.abort(new Error('left'));
  await left;
  held[Symbol.dispose]();
  using _slot = await next;
  assert.equal(slots.waiting, 0);
});

test('take never overtakes waiting callers', async () => {
  const slots = new Slots(1);
  const held = await slots.acquire({ signal: never });
  const next = slots.acquire({ signal: never });
  assert.equal(slots.take(), undefined);
  held[Symbol.dispose]();
  assert.equal(slots.take(), undefined);
  (await next)[Symbol.dispose]();
  assert.notEqual(slots.take(), undefined);
});
