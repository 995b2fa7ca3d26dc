// Waiting under a signal.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { raceSignal } from '../src/race.ts';

test('an abort rejects even if the work ignores the signal', async () => {
  const abort = new AbortController();
  const raced = raceSignal(new Promise(() => {}), abort.signal);
  abort.abort(new Error('enough'));
  await assert.rejects(raced, /enough/);
});

test('a signal that has already aborted wins', async () => {
  await assert.rejects(raceSignal(Promise.resolve(1), AbortSignal.abort(new Error('before'))), /before/);
});

test('the value is returned, and a late abort changes nothing', async () => {
  const abort = new AbortController();
  assert.equal(await raceSignal(Promise.resolve(7), abort.signal), 7);
  abort.abort();
});
