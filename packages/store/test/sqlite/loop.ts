// A process on the same database file, for tests: it listens for hints, or submits, or claims and finishes until it is killed. It
// reports each write to its parent only after the store acknowledged it.

import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { workerId } from '@millrace/protocol';
import { makeResult, makeRollout, makeTrajectory, moveUpTo } from '@millrace/testkit';
import { openSqliteStore } from '../../src/sqlite/sqlite.ts';
import type { Store } from '../../src/store.ts';

const [path = '', task = '', name = ''] = process.argv.slice(2);
const store = await openSqliteStore({ path, clock: systemClock, log: silentLog });
if (task === 'listen') listen(store);
else if (task === 'submit') await submitForever(store);
else await workForever(store);

function report(message: unknown): void {
  process.send?.(message);
}

function listen(store: Store): void {
  let reported = 0;
  store.onHint(async () => {
    const { queued } = await store.counts();
    if (queued > reported) report({ queued });
    reported = queued;
  });
  report('ready');
}

async function submitForever(store: Store): Promise<void> {
  for (let n = 0; ; n++) {
    const id = `${name}-${n}`;
    await store.submit([makeRollout(`${id}a`), makeRollout(`${id}b`)], { maxQueued: 1_000_000 });
    report({ submitted: [`${id}a`, `${id}b`] });
  }
}

async function workForever(store: Store): Promise<void> {
  const worker = workerId.parse(name);
  await store.registerWorker({ id: worker, host: 'h', pid: process.pid }, { leaseMs: 600_000 });
  for (;;) {
    const claims = await store.claim(worker, 8);
    await Promise.all(
      claims.map(async (claim) => {
        await moveUpTo(store, claim, 'evaluate');
        const trajectory = makeTrajectory(claim.id, claim.attempt);
        await store.finish(claim, { state: 'done', result: makeResult(claim.attempt), trajectory });
        report({ finished: claim.id, attempt: claim.attempt });
      }),
    );
  }
}
