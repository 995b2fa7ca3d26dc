// The gate for calls into sandboxes: few begin at a time, and a long one keeps no other waiting.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { definedOf } from '@millrace/protocol';
import { FakeClock } from '@millrace/testkit/plain';
import { CallGate } from '../../src/limits/call-gate.ts';

function openGate() {
  const clock = new FakeClock();
  const gate = new CallGate(1, clock);
  const begun: string[] = [];
  const run = (name: string, signal?: AbortSignal) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const ended = gate.run(() => {
      begun.push(name);
      return promise;
    }, definedOf({ signal }));
    return { ended, end: () => resolve(name) };
  };
  return { clock, begun, run };
}

test('a call begins when the one before it has ended', async () => {
  const { begun, run } = openGate();
  const [first, second] = [run('first'), run('second')];
  assert.deepEqual(begun, ['first']);
  first.end();
  assert.equal(await first.ended, 'first');
  second.end();
  assert.equal(await second.ended, 'second');
});

test('a call that takes long keeps no other waiting, and gives back its place once', async () => {
  const { clock, begun, run } = openGate();
  const [long, second, third] = [run('long'), run('second'), run('third')];
  clock.advance(50);
  await Promise.resolve();
  assert.deepEqual(begun, ['long', 'second']);
  long.end();
  await long.ended;
  assert.deepEqual(begun, ['long', 'second']);
  second.end();
  third.end();
  await third.ended;
});

test('a call that is aborted while it waits never begins', async () => {
  const { begun, run } = openGate();
  const controller = new AbortController();
  const first = run('first');
  const aborted = run('aborted', controller.signal);
  const last = run('last');
  controller.abort(new Error('enough'));
  await assert.rejects(aborted.ended, /enough/);
  first.end();
  await first.ended;
  last.end();
  await last.ended;
  assert.deepEqual(begun, ['first', 'last']);
});
