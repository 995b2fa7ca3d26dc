// The trajectory that a rollout has if its worker is lost, as a blob: it becomes the rollout's, or it is removed.

import assert from 'node:assert/strict';
import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { rolloutId, workerId } from '@millrace/protocol';
import {
  makeFailure,
  makeResult,
  makeRollout,
  makeTempFolder,
  makeTrajectory,
  moveUpTo,
  PostgresServer,
  skipPostgres,
} from '@millrace/testkit';
import { openFolderBlobs } from '../../src/blobs/folder-blobs.ts';
import { openPostgresStore } from '../../src/postgres/postgres.ts';
import { openSqliteStore } from '../../src/sqlite/sqlite.ts';
import type { ClaimedRollout, Store } from '../../src/store.ts';

const rules = { maxLosses: 10 };
const id = rolloutId.parse('a');

interface Bed extends AsyncDisposable {
  readonly store: Store;
  /** The files of all trajectories. */
  files(): string[];
}

let opening: Promise<PostgresServer> | undefined;
after(async () => (await opening)?.[Symbol.asyncDispose]());

async function makeAddress(): Promise<string> {
  opening ??= PostgresServer.open();
  return await (await opening).makeAddress();
}

async function openBed(engine: 'SQLite' | 'PostgreSQL'): Promise<Bed> {
  const temp = await makeTempFolder('millrace-loss-blobs');
  const folder = join(temp.path, 'blobs');
  const options = { clock: systemClock, log: silentLog, blobs: openFolderBlobs(folder) };
  const store =
    engine === 'SQLite'
      ? await openSqliteStore({ ...options, path: join(temp.path, 'store.db') })
      : await openPostgresStore({ ...options, address: await makeAddress() });
  return {
    store,
    files: () =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name)),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await temp[Symbol.asyncDispose]();
    },
  };
}

/** In its third attempt, with what it gets if its worker is lost. */
async function judgeApart(store: Store): Promise<ClaimedRollout> {
  await store.submit([makeRollout(id)], { maxQueued: 9 });
  for (const name of ['first', 'second', 'third']) {
    const worker = workerId.parse(name);
    await store.registerWorker({ id: worker, host: 'here', pid: 1 }, { leaseMs: 600_000 });
    const [claim] = await store.claim(worker, 1);
    assert.ok(claim);
    await moveUpTo(store, claim, 'evaluate');
    if (claim.isJudgedApart) {
      await store.endIfLost(claim, { result: makeResult(-1), trajectory: makeTrajectory(id, 3) });
      return claim;
    }
    await store.dropWorker(claim.worker, rules);
  }
  throw new Error('it is never judged apart');
}

describe('SQLite', () => defineTests('SQLite'));
describe('PostgreSQL', { skip: skipPostgres }, () => defineTests('PostgreSQL'));

function defineTests(engine: 'SQLite' | 'PostgreSQL'): void {
  test(`the blob of a rollout that is lost is its trajectory, until retention deletes it`, async () => {
    await using bed = await openBed(engine);
    const { store } = bed;
    const { worker } = await judgeApart(store);
    const twoDaysAgo = Date.now() / 1000 - 172_800;
    for (const file of bed.files()) utimesSync(file, twoDaysAgo, twoDaysAgo);
    assert.equal(await store.removeBlobs({ sweep: true }), 0, 'a row refers to it');
    await store.dropWorker(worker, rules);
    assert.equal(await store.removeBlobs({ sweep: true }), 0);
    assert.equal((await store.get(id))?.result?.reward, -1);
    assert.deepEqual(await store.trajectory(id), makeTrajectory(id, 3));
    while ((await store.retain({ endedMs: 1, eventsMs: 1 })) === 0);
    assert.equal(await store.removeBlobs({ sweep: false }), 1);
    assert.deepEqual(bed.files(), []);
  });

  const others: Record<string, (store: Store, claim: ClaimedRollout) => Promise<unknown>> = {
    retry: (store, claim) => store.retry(claim, makeFailure('sandbox-failed', 3), { delayMs: 0 }),
    release: (store, claim) => store.release(claim),
    'an end of its own': (store, claim) => store.finish(claim, { state: 'failed', failure: makeFailure('internal', 3) }),
    'one that is fenced': (store, claim) =>
      store.endIfLost({ ...claim, attempt: 2 }, { result: makeResult(0), trajectory: makeTrajectory(id, 2) }),
  };
  for (const [name, write] of Object.entries(others)) {
    test(`after ${name}, no blob is left that no row refers to`, async () => {
      await using bed = await openBed(engine);
      await write(bed.store, await judgeApart(bed.store));
      const isFenced = name === 'one that is fenced';
      assert.equal(await bed.store.removeBlobs({ sweep: false }), isFenced ? 0 : 1);
      assert.equal(bed.files().length, isFenced ? 1 : 0);
    });
  }
}
