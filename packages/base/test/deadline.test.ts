// Deadlines: what is charged, and when they expire.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '@millrace/testkit/plain';
import { Deadline, Expired } from '../src/deadline.ts';

test('a deadline aborts with Expired when its time is used up', () => {
  const clock = new FakeClock();
  using deadline = new Deadline('run', 1000, clock);
  clock.advance(999);
  assert.equal(deadline.signal.aborted, false);
  clock.advance(1);
  assert.ok(deadline.signal.reason instanceof Expired);
  assert.match(deadline.signal.reason.message, /run took longer than its 1 s/);
});

test('an uncharged wait costs no time, however long it takes', async () => {
  const clock = new FakeClock();
  using deadline = new Deadline('run', 1000, clock);
  clock.advance(400);
  const wait = Promise.withResolvers<string>();
  const waited = deadline.uncharged(() => wait.promise);
  clock.advance(1_000_000);
  wait.resolve('backend');
  assert.equal(await waited, 'backend');
  assert.equal(deadline.chargedMs, 400);
  clock.advance(599);
  assert.equal(deadline.signal.aborted, false);
  clock.advance(1);
  assert.equal(deadline.signal.aborted, true);
});

test('overlapping waits are uncharged until the last one ends', async () => {
  const clock = new FakeClock();
  using deadline = new Deadline('run', 1000, clock);
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const waits = [deadline.uncharged(() => first.promise), deadline.uncharged(() => second.promise)];
  first.resolve();
  await waits[0];
  clock.advance(5000);
  assert.equal(deadline.chargedMs, 0);
  second.resolve();
  await waits[1];
  clock.advance(10);
  assert.equal(deadline.chargedMs, 10);
});

test('a disposed deadline never aborts', () => {
  const clock = new FakeClock();
  const deadline = new Deadline('run', 1000, clock);
  deadline[Symbol.dispose]();
  clock.advance(10_000);
  assert.equal(deadline.signal.aborted, false);
});

test('refunded time can be used again, during a wait and outside one', async () => {
  const clock = new FakeClock();
  using deadline = new Deadline('run', 1000, clock);
  clock.advance(900);
  deadline.refund(800);
  assert.equal(deadline.chargedMs, 100);
  clock.advance(899);
  assert.equal(deadline.signal.aborted, false);
  await deadline.uncharged(async () => deadline.refund(500));
  clock.advance(500);
  assert.equal(deadline.signal.aborted, false);
  clock.advance(1);
  assert.equal(deadline.signal.aborted, true);
});

test('a wait that ends after the deadline was disposed does not start its clock again', async () => {
  const clock = new FakeClock();
  const deadline = new Deadline('run', 1000, clock);
  const { promise, resolve } = Promise.withResolvers<void>();
  const waited = deadline.uncharged(() => promise);
  deadline[Symbol.dispose]();
  resolve();
  await waited;
  deadline.refund(10);
  clock.advance(10_000);
  assert.equal(deadline.signal.aborted, false);
});
