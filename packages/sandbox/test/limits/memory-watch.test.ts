// The memory watch of hosts without control groups.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { FakeClock, makeTempFolder } from '@millrace/testkit/plain';
import { openMemoryWatch } from '../../src/limits/memory-watch.ts';

test('a look at the processes that fails is logged once and repeated, and rejects nothing', { timeout: 30_000 }, async () => {
  await using folder = await makeTempFolder('memory-watch');
  const proc = join(folder.path, 'proc');
  const clock = new FakeClock();
  const looks = { made: 0, next: Promise.withResolvers<void>() };
  const after: FakeClock['after'] = (ms, callback) => {
    looks.made += 1; // a look is over when the next one is scheduled
    looks.next.resolve();
    looks.next = Promise.withResolvers();
    return clock.after(ms, callback);
  };
  const logged: string[] = [];
  const log = { ...silentLog, error: (event: string) => void logged.push(event) };
  const counted = { now: () => clock.now(), monotonic: () => clock.monotonic(), after };
  const watch = openMemoryWatch({ log, clock: counted, proc });
  const look = async () => {
    const { promise } = looks.next;
    clock.advance(1000);
    await promise;
  };
  const stop = watch.add(1, 1);
  await look();
  await look();
  assert.deepEqual(logged, ['memory-watch-failed']);
  await mkdir(proc);
  await look();
  assert.equal(logged.length, 1);
  stop();
});
