// Many streams are read on one beat, few at once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '@millrace/testkit';
import { StreamBeat } from '../src/stream-beat.ts';

function openBeat() {
  const clock = new FakeClock();
  const readings: number[] = [];
  let beats = 0;
  const beat = new StreamBeat(clock, async (steps) => {
    beats += 1;
    for (const _ of steps);
  });
  const open = (id: number) => beat.open(() => readings.push(id));
  return { clock, open, readings, beats: () => beats };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('the pieces of a single stream are read as they arrive', () => {
  const { clock, open, readings } = openBeat();
  const stream = open(0);
  for (let piece = 0; piece < 5; piece += 1) {
    stream.note();
    clock.advance(10);
  }
  assert.equal(readings.length, 5);
  assert.equal(clock.timers, 0);
});

test('the first piece of each of many streams is read at once, and the others together on a beat', async () => {
  const { clock, open, readings, beats } = openBeat();
  const streams = Array.from({ length: 50 }, (_, id) => open(id));
  for (const stream of streams) stream.note();
  assert.equal(readings.length, 50);
  for (let piece = 0; piece < 9; piece += 1) {
    clock.advance(10); // in all less than the 100 ms that 50 streams ask for
    for (const stream of streams) stream.note();
  }
  assert.equal(readings.length, 50);
  clock.advance(100);
  await settle();
  assert.deepEqual(readings.slice(50), [...readings.slice(0, 50)], 'each once more');
  assert.equal(beats(), 1);
});

test('a piece that arrives during a beat is read on the next, and one of a stream that has ended is not', async () => {
  const clock = new FakeClock();
  const readings: string[] = [];
  let between = () => {};
  const beat = new StreamBeat(clock, async (steps) => {
    for (const _ of steps) between();
  });
  const [first, second, third] = ['first', 'second', 'third'].map((name) => beat.open(() => readings.push(name)));
  for (let piece = 0; piece < 2; piece += 1) for (const stream of [first, second, third]) stream?.note();
  readings.length = 0;
  between = () => {
    between = () => {};
    third?.[Symbol.dispose]();
    first?.note();
  };
  clock.advance(10);
  await settle();
  assert.deepEqual(readings, ['first', 'second']);
  clock.advance(10);
  await settle();
  assert.deepEqual(readings, ['first', 'second', 'first']);
});

test('however many streams there are, each is read four times a second', async () => {
  const { clock, open, readings } = openBeat();
  const streams = Array.from({ length: 1000 }, (_, id) => open(id));
  for (let piece = 0; piece < 2; piece += 1) for (const stream of streams) stream.note();
  clock.advance(250);
  await settle();
  assert.equal(readings.length, 2000);
});
