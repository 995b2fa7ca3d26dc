// The SQLite store with trajectories as blobs in a folder: what happens to them when writes fail, rows are
// deleted, or files are lost.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { workerId } from '@millrace/protocol';
import { makeResult, makeRollout, makeTempFolder, makeTrajectory, moveUpTo } from '@millrace/testkit';
import type { BlobStore } from '../../src/blobs/blob-store.ts';
import { openFolderBlobs } from '../../src/blobs/folder-blobs.ts';
import { openSqliteStore } from '../../src/sqlite/sqlite.ts';
import type { ClaimedRollout, Store } from '../../src/store.ts';

const roomy = { maxQueued: 1000 };
const worker = workerId.parse('w-1');

interface Bed extends AsyncDisposable {
  readonly store: Store;
  readonly folder: string;
  open(changes?: Partial<BlobStore>): Promise<Store>;
  /** The files of all trajectories. */
  files(): string[];
}

async function openBed(): Promise<Bed> {
  const temp = await makeTempFolder('millrace-blob-store');
  const folder = join(temp.path, 'blobs');
  const opened: Store[] = [];
  const open: Bed['open'] = async (changes = {}) => {
    const blobs = { ...openFolderBlobs(folder), ...changes };
    const store = await openSqliteStore({ path: join(temp.path, 'store.db'), clock: systemClock, log: silentLog, blobs });
    opened.push(store);
    return store;
  };
  const store = await open();
  await store.registerWorker({ id: worker, host: 'here', pid: 1 }, { leaseMs: 600_000 });
  return {
    store,
    folder,
    open,
    files: () => readFiles(folder),
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((one) => one[Symbol.asyncDispose]()));
      await temp[Symbol.asyncDispose]();
    },
  };
}

function readFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    return []; // nothing was written yet
  }
}

async function claimOne(store: Store, id: string): Promise<ClaimedRollout> {
  await store.submit([makeRollout(id)], roomy);
  const [claim] = await store.claim(worker, 1);
  assert.ok(claim);
  await moveUpTo(store, claim, 'evaluate');
  return claim;
}

const endingOf = (id: string) => ({ state: 'done', result: makeResult(1), trajectory: makeTrajectory(id, 1) }) as const;

test('a trajectory is written as a blob and read by another process', async () => {
  await using bed = await openBed();
  const claim = await claimOne(bed.store, 'a');
  assert.equal(await bed.store.finish(claim, endingOf('a')), true);
  assert.equal(bed.files().length, 1);
  const reader = await bed.open();
  assert.deepEqual(await reader.trajectory(claim.id), makeTrajectory('a', 1));
});

test('a blob store that fails leaves the rollout unfinished, and the same ending succeeds later', async () => {
  await using bed = await openBed();
  const failing = await bed.open({ put: () => Promise.reject(new Error('connection refused')) });
  const claim = await claimOne(bed.store, 'a');
  await assert.rejects(failing.finish(claim, endingOf('a')), { name: 'StoreFault', message: /connection refused/ });
  await assert.rejects(failing.checkHealth(), { name: 'StoreFault' });
  assert.equal((await bed.store.get(claim.id))?.state, 'evaluate');
  assert.equal(await bed.store.finish(claim, endingOf('a')), true);
});

test('an ending that is fenced leaves no blob', async () => {
  await using bed = await openBed();
  const claim = await claimOne(bed.store, 'a');
  await bed.store.finish(claim, endingOf('a'));
  assert.equal(await bed.store.finish(claim, endingOf('a')), false);
  assert.equal(bed.files().length, 1);
  assert.deepEqual(await bed.store.trajectory(claim.id), makeTrajectory('a', 1));
});

test('a blob goes after its row, and one that no row refers to goes a day later', async () => {
  await using bed = await openBed();
  const claim = await claimOne(bed.store, 'a');
  await bed.store.finish(claim, endingOf('a'));
  const [file = ''] = bed.files();
  const [orphan, young] = [join(dirname(file), 'orphan'), join(dirname(file), 'young')];
  const foreign = join(bed.folder, 'trajectories', 'another-store', 'blob');
  mkdirSync(dirname(foreign), { recursive: true });
  for (const path of [orphan, young, foreign]) writeFileSync(path, 'x');
  const twoDaysAgo = Date.now() / 1000 - 172_800;
  for (const path of [orphan, foreign, file]) utimesSync(path, twoDaysAgo, twoDaysAgo);
  assert.equal(await bed.store.removeBlobs({ sweep: true }), 1);
  assert.deepEqual(bed.files().toSorted(), [file, young, foreign].toSorted());
  while ((await bed.store.retain({ endedMs: 1, eventsMs: 1 })) === 0);
  assert.equal(bed.files().length, 3, 'the row is gone, the blob is not yet');
  assert.equal(await bed.store.removeBlobs({ sweep: false }), 1);
  assert.deepEqual(bed.files().toSorted(), [young, foreign].toSorted());
  assert.equal(await bed.store.removeBlobs({ sweep: false }), 0);
});

test('a blob that was lost is an error that names it, and not a rollout without a trajectory', async () => {
  await using bed = await openBed();
  const claim = await claimOne(bed.store, 'a');
  await bed.store.finish(claim, endingOf('a'));
  for (const file of bed.files()) rmSync(file);
  const missing = { code: 'trajectory-missing', message: /trajectory of rollout a is missing: .* is not in folder:.*store\.blobs/ };
  await assert.rejects(bed.store.trajectory(claim.id), missing);
  await using plain = await openSqliteStore({ path: join(dirname(bed.folder), 'store.db'), clock: systemClock, log: silentLog });
  await assert.rejects(plain.trajectory(claim.id), { code: 'trajectory-missing', message: /store\.blobs names none/ });
});
