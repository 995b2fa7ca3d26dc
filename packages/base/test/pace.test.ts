// Pacing: bursts are spread over turns of the event loop.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../src/clock.ts';
import { awaitStep, Pace, type Steps } from '../src/pace.ts';

test('all callers proceed in order, and a timer that falls due does not wait for the last of them', async () => {
  const pace = new Pace();
  const order: (number | 'timer')[] = [];
  const work = async (number: number) => {
    await pace.turn();
    await Promise.resolve();
    for (const end = performance.now() + 2; performance.now() < end; );
    order.push(number);
  };
  setTimeout(() => order.push('timer'), 1);
  await Promise.all(Array.from({ length: 30 }, (_, number) => work(number)));
  const numbers = order.filter((entry) => entry !== 'timer');
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index),
  );
  assert.equal(numbers.length, 30);
  assert.ok(order.indexOf('timer') < 15, `the timer came at ${order.indexOf('timer')}`);
});

test('a single caller that asks repeatedly is served each time', async () => {
  const pace = new Pace();
  for (let time = 0; time < 3; time += 1) await pace.turn();
  await Promise.all([pace.turn(), pace.turn()]);
});

test('work in steps yields after each slice and returns its result', async () => {
  const pace = new Pace();
  let timers = 0;
  function* steps(): Steps<string> {
    for (let step = 0; step < 30; step++) {
      for (const end = performance.now() + 2; performance.now() < end; );
      yield;
    }
    return `after ${timers} timers`;
  }
  const timer = setInterval(() => (timers += 1), 1);
  assert.notEqual(await pace.run(steps()), 'after 0 timers');
  clearInterval(timer);
});

test('each turn of the event loop has one slice, however long the work is', async () => {
  let nowMs = 0;
  const pace = new Pace({ ...systemClock, monotonic: () => nowMs });
  let [inTurn, most, isOver] = [0, 0, false];
  function* steps(): Steps<void> {
    for (let step = 0; step < 100; step++) {
      nowMs += 2;
      most = Math.max(most, ++inTurn);
      yield;
    }
  }
  const tick = () => {
    inTurn = 0;
    if (!isOver) setImmediate(tick);
  };
  tick();
  await pace.run(steps());
  isOver = true;
  assert.equal(most, 3, 'the steps of 5 ms');
});

test('steps that await a promise get its value or its error', async () => {
  const pace = new Pace();
  function* steps(): Steps<string> {
    yield;
    const word = yield* awaitStep(Promise.resolve('came'));
    try {
      yield* awaitStep(Promise.reject(new Error('broke')));
    } catch (error) {
      return `${word}, ${String(error)}`;
    }
    return word;
  }
  assert.equal(await pace.run(steps()), 'came, Error: broke');
});
