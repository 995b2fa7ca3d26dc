// Claims about waiting under a signal.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { raceSignal } from '../../src/base/race.ts';

test('work that does not listen is left behind when the signal aborts', async () => {
  const abort = new AbortController();
  const raced = raceSignal(new Promise(() => {}), abort.signal);
  abort.abort(new Error('enough'));
  await assert.rejects(raced, /enough/);
});

test('a signal that has aborted already wins', async () => {
  await assert.rejects(raceSignal(Promise.resolve(1), AbortSignal.abort(new Error('before'))), /before/);
});

test('the value passes, and a late abort changes nothing', async () => {
  const abort = new AbortController();
  assert.equal(await raceSignal(Promise.resolve(7), abort.signal), 7);
  abort.abort();
});
