// The clock of a verdict: sleep counts, CPU time counts, and a wait that the machine caused does not.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '@millrace/testkit/plain';
import { OwnClock } from '../../src/limits/own-clock.ts';

/** A sandbox whose programs get this share of a core while they are busy. */
function openClock({ isBusy, share = 0 }: { isBusy: boolean; share?: number }, pressureMs = () => 0) {
  const clock = new FakeClock();
  const own = new OwnClock({ clock, readPressureMs: pressureMs });
  const readUse = () => ({ cpuMs: clock.monotonic() * share, isBusy, ownOomKills: 0, foreignOomKills: 0 });
  return { clock, own, sandbox: { readUse } };
}

function countdown(own: OwnClock, ms: number): () => boolean {
  let isOver = false;
  own.after(ms, () => {
    isOver = true;
  });
  return () => isOver;
}

test('a program that sleeps is charged by the wall clock', () => {
  const { clock, own, sandbox } = openClock({ isBusy: false });
  own.watch(sandbox);
  const isOver = countdown(own, 10_000);
  clock.advance(9_000);
  assert.equal(isOver(), false);
  clock.advance(1_500);
  assert.equal(isOver(), true);
});

test('a program that gets a twentieth of a core is charged a twentieth of the time, and in the end it is charged', () => {
  const { clock, own, sandbox } = openClock({ isBusy: true, share: 0.05 });
  own.watch(sandbox);
  const isOver = countdown(own, 10_000);
  clock.advance(190_000);
  assert.equal(isOver(), false);
  clock.advance(20_000);
  assert.equal(isOver(), true);
});

test('a program on several cores is charged no more than the wall clock', () => {
  const { clock, own, sandbox } = openClock({ isBusy: true, share: 8 });
  own.watch(sandbox);
  clock.advance(5_000);
  assert.ok(own.monotonic() <= 5_000);
});

test('a sleeper next to a busy sandbox of the same evaluation is not charged for the wait of the other', () => {
  const { clock, own, sandbox } = openClock({ isBusy: false });
  own.watch(sandbox);
  const stop = own.watch({ readUse: () => ({ cpuMs: 0, isBusy: true, ownOomKills: 0, foreignOomKills: 0 }) });
  clock.advance(60_000);
  assert.equal(own.monotonic(), 0);
  stop();
  clock.advance(1_000);
  assert.equal(own.monotonic(), 1_000);
});

test('without a sandbox, only the time counts in which nothing on the machine waited for a core', () => {
  let waitedMs = 0;
  const { clock, own } = openClock({ isBusy: false }, () => waitedMs);
  waitedMs = 8_000;
  clock.advance(10_000);
  assert.equal(own.monotonic(), 2_000);
});

test('a cancelled timer never fires, and leaves no look behind', () => {
  const { clock, own } = openClock({ isBusy: false });
  const fired: string[] = [];
  const cancel = own.after(1_000, () => fired.push('first'));
  own.after(2_000, () => fired.push('second'));
  cancel();
  clock.advance(5_000);
  assert.deepEqual(fired, ['second']);
});
