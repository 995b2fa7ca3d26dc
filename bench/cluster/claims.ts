// Claims per second on the two engines of the store, in the same run and on the same disk, by 1, 4 and 16 workers that each have their own
// handle: one at a time, as a worker takes them when a slot becomes free, and several at once, as it does when it starts.

import { join } from 'node:path';
import { workerId } from '@millrace/protocol';
import { makeRollout, makeTempFolder, PostgresServer } from '@millrace/testkit';
import { systemClock } from '../../packages/base/src/clock.ts';
import { silentLog } from '../../packages/base/src/log.ts';
import { openStore } from '../../packages/store/src/open/open-store.ts';
import type { Store } from '../../packages/store/src/store.ts';
import type { BenchReport, BenchRow } from '../report/report.ts';

export interface ClaimsSizes {
  readonly workers: readonly number[];
  /** For each measurement with one at a time; eight times as many with eight. */
  readonly rollouts: number;
}

const fullSizes: ClaimsSizes = { workers: [1, 4, 16], rollouts: 2_000 };
const together = [1, 8] as const;

export async function runClaimsBench({ workers, rollouts } = fullSizes): Promise<BenchReport> {
  await using folder = await makeTempFolder('millrace-bench');
  await using server = await PostgresServer.open({ isDurable: true });
  const rows: BenchRow[] = [];
  for (const count of workers)
    for (const limit of together) {
      const what = `${limit === 1 ? 'one' : limit} at a time, ${count} ${count === 1 ? 'worker' : 'workers'}`;
      const sizes = { count, limit, rollouts: rollouts * limit };
      const sqlite = await measure(join(folder.path, `${count}-${limit}`, 'store.db'), sizes);
      const postgres = await measure(await server.makeAddress(), sizes);
      const row = { unit: 'claims/s', larger: 'better' } as const;
      rows.push({ what: `${what}, SQLite`, samples: [sqlite], ...row });
      rows.push({ what: `${what}, PostgreSQL`, samples: [postgres], against: rows.length - 1, ...row });
    }
  return {
    title: 'Claims: rollouts taken from the waiting line per second',
    rows,
    notes: [
      'Both commit to the disk of the temporary folder before they answer. All workers are in one process, and PostgreSQL shares the cores with it, over a Unix socket.',
    ],
  };
}

interface ClaimSizes {
  readonly count: number;
  readonly limit: number;
  readonly rollouts: number;
}

async function measure(address: string, { count, limit, rollouts }: ClaimSizes): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const stores = await Array.fromAsync({ length: count }, async () =>
    stack.use(await openStore(address, { clock: systemClock, log: silentLog })),
  );
  await stores[0]?.submit(
    Array.from({ length: rollouts }, (_, index) => makeRollout(`r${index}`)),
    { maxQueued: rollouts },
  );
  const startedAt = performance.now();
  const taken = await Promise.all(stores.map((store, index) => claimAll(store, `bench-${index}`, limit)));
  const seconds = (performance.now() - startedAt) / 1000;
  const sum = taken.reduce((all, one) => all + one, 0);
  if (sum !== rollouts) throw new Error(`${sum} rollouts were claimed, not ${rollouts}`);
  return sum / seconds;
}

async function claimAll(store: Store, name: string, limit: number): Promise<number> {
  const id = workerId.parse(name);
  await store.registerWorker({ id, host: 'bench', pid: process.pid }, { leaseMs: 3_600_000 });
  for (let taken = 0; ; ) {
    const claimed = await store.claim(id, limit);
    if (claimed.length === 0) return taken;
    taken += claimed.length;
  }
}
