// Runs with TMPDIR on a small disk: fills it while a rollout runs, and empties it again. Prints one line for each step that went as it
// should; fails at the first that did not.

import assert from 'node:assert/strict';
import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { silentLog } from '@millrace/base/log';
import { serviceConfig } from '../../../src/config.ts';
import { runHousekeeping } from '../../../src/housekeeping.ts';
import { errorOf, makeResult, makeTrajectory, openFloor, task } from '../floor.ts';

const mib = 2 ** 20;
const logged: string[] = [];
const note = (event: string, fields?: object) => void logged.push(`${event} ${JSON.stringify(fields)}`);
await using floor = await openFloor({ limits: { leastFreeBytes: 8 * mib }, log: { ...silentLog, error: note, info: note } });
const closing = new AbortController();
const housekeeping = runHousekeeping(floor.store, {
  config: serviceConfig.parse({}),
  log: { ...silentLog, error: note, info: note },
  signal: closing.signal,
  leadership: { isLeader: true },
  onLock: () => {},
});
const ballast = join(tmpdir(), 'ballast');
await floor.worker.register();
const [first, second, waiting] = [await floor.submit(), await floor.submit(), await floor.submit()];
const held = [await floor.worker.claim(first), await floor.worker.claim(second)] as const;
console.log('accepted');

fillUpTo(4 * mib);
const refused = await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task }] });
assert.equal(refused.status, 507);
assert.match(errorOf(refused).message, /the store is full .* Its disk has [34]\.\d MiB free .* free some space on that disk/);
assert.equal(refused.headers['retry-after'], '5');
const batch = { scenario: 'sums', tasks: [task], group_size: 2, target: 1 };
assert.equal((await floor.call('POST', '/v1/batches', batch)).status, 507);
const ready = await floor.call('GET', '/readyz');
assert.equal(ready.status, 503);
assert.match(errorOf(ready).message, /the store is full: its disk has/);
await until(async () => /millrace_store_full 1/.test((await floor.call('GET', '/metrics')).body));
assert.match((await floor.call('GET', '/v1/status')).body.hints.join(), /the store is full: its disk has/);
await until(async () => logged.some((line) => line.startsWith('store-full ')));
await setTimeout(1_100); // claims rely on a size of the last second
assert.deepEqual(await floor.store.claim(floor.worker.id, 1), []);
console.log('refused');

await floor.worker.finish(held[0], { state: 'done', result: makeResult({ reward: 1 }), trajectory: makeTrajectory(first) });
assert.equal((await floor.call('GET', `/v1/rollouts/${first}`)).body.state, 'done');
console.log('finished');

for (const to of ['ready', 'run', 'evaluate'] as const) assert.equal(await floor.store.move(held[1], to), true);
fillUpTo(0);
const ending = { state: 'done', result: makeResult({ reward: 1 }), trajectory: makeTrajectory(second) } as const;
const error: Error = await fail(() => floor.store.finish(held[1], { ...ending, result: makeResult({ score: { long: 'x'.repeat(mib) } }) }));
assert.match(error.message, /ENOSPC, SQLITE_FULL|EIO, SQLITE_IOERR/);
console.log('no space at all');

rmSync(ballast);
await until(async () => (await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task }] })).status === 200);
await until(async () => /millrace_store_full 0/.test((await floor.call('GET', '/metrics')).body));
assert.equal((await floor.call('GET', '/readyz')).status, 200);
await until(async () => logged.some((line) => line.startsWith('store-has-space ')));
assert.equal(logged.filter((line) => line.startsWith('store-full ')).length, 1, 'it is logged once');
console.log('accepted again');

assert.equal(await floor.store.finish(held[1], ending), true);
await until(async () => (await floor.store.claim(floor.worker.id, 1)).some(({ id }) => id === waiting));
console.log('saved');
closing.abort();
await housekeeping;

/** Leaves this much free, within a page. */
function fillUpTo(freeBytes: number): void {
  const file = openSync(ballast, 'a');
  const { bavail, bsize } = statfsSync(tmpdir());
  const block = Buffer.alloc(bsize, 1);
  for (let left = Math.floor((bavail * bsize - freeBytes) / bsize); left > 0; left -= 1) writeSync(file, block);
  closeSync(file);
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await setTimeout(20);
}

async function fail(work: () => Promise<unknown>): Promise<Error> {
  try {
    await work();
  } catch (error) {
    assert.ok(error instanceof Error);
    return error;
  }
  assert.fail('it succeeded');
}
