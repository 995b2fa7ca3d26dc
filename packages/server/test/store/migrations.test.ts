// A store of an older schema: it is migrated when it is opened, its rollouts finish, and a migration that fails changes nothing.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { batchId, isTerminal, rolloutId } from '@millrace/protocol';
import { openSqliteStore } from '@millrace/store';
import { FakeClock, makeTempFolder, makeTrajectory, SimulatedPipeline } from '@millrace/testkit';
import { dumpDatabase, readSchema } from '../../../store/test/sqlite/dump.ts';
import { BatchKeeper } from '../../src/batches/batch-keeper.ts';
import { TaskFiles } from '../../src/batches/task-files.ts';
import { scenarios } from '../batches/simulated-batches.ts';

const fixture = readFileSync(join(import.meta.dirname, '../../../store/test/sqlite/fixtures/schema-17.sql'), 'utf8');

/** A store file of schema 17 as that version left it when it was killed, changed by `sql`. */
function writeOldStore(path: string, sql = ''): void {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; ${fixture} ${sql}`);
  db.close();
}

function readDatabase<T>(path: string, read: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path);
  try {
    return read(db);
  } finally {
    db.close();
  }
}

function openStore(path: string, clock = new FakeClock(1_700_000_100_000)) {
  return openSqliteStore({ path, clock, log: silentLog });
}

test('a store of schema 17 is migrated, and all its rollouts finish', async () => {
  await using folder = await makeTempFolder('millrace-migrate');
  const path = join(folder.path, 'store.db');
  writeOldStore(path);
  const clock = new FakeClock(1_700_000_100_000);
  await using store = await openStore(path, clock);
  assert.equal((await store.counts()).run, 1, 'the rollouts of the old worker are still there');
  assert.deepEqual(await store.trajectory(rolloutId.parse('done')), makeTrajectory('done', 1));
  assert.equal(await store.acked(batchId.parse('met'), 'trainer'), 1);
  await store.expire({ leaseMs: 10_000, maxLosses: 3 });
  const pipeline = new SimulatedPipeline({
    store,
    clock,
    slots: 4,
    version: () => 3,
    course: ({ id }) => ({ seconds: 1, tokens: 10, reward: Number(id.endsWith('0')) }),
  });
  await pipeline.start();
  const keeper = new BatchKeeper({ store, scenarios, files: new TaskFiles({}), clock, log: silentLog });
  for (let idle = 0; idle < 3; ) {
    while (await keeper.advance());
    await pipeline.stopCancelled();
    await pipeline.claim();
    idle = (await pipeline.step()) ? 0 : idle + 1;
    if (idle > 0) clock.advance(60_000);
  }
  const { rollouts } = await store.list({ limit: 1000 });
  assert.deepEqual(
    rollouts.filter(({ state }) => !isTerminal(state)).map(({ id }) => id),
    [],
  );
  for (const id of ['queued', 'running', 'retried']) assert.equal(rollouts.find((one) => one.id === id)?.state, 'done', id);
  const open = await store.batch(batchId.parse('open'));
  assert.deepEqual([open?.state, open?.groups.delivered], ['met', 3]);
});

test('a migrated store has the tables of a new one', async () => {
  await using folder = await makeTempFolder('millrace-migrate');
  const [migrated, fresh] = ['migrated.db', 'fresh.db'].map((name) => join(folder.path, name));
  assert.ok(migrated && fresh);
  writeOldStore(migrated);
  for (const path of [migrated, fresh]) await (await openStore(path))[Symbol.asyncDispose]();
  assert.deepEqual(readDatabase(migrated, readSchema), readDatabase(fresh, readSchema));
});

test('a migration that fails leaves the file as it was, and says which', async () => {
  await using folder = await makeTempFolder('millrace-migrate');
  const path = join(folder.path, 'store.db');
  // The column that the migration adds after its first change is already there.
  writeOldStore(path, 'ALTER TABLE policy ADD COLUMN owned_pause INTEGER');
  const before = readDatabase(path, dumpDatabase);
  await assert.rejects(openStore(path), {
    message: /the migration from schema 17 to 18 failed, and the store was left as it was: duplicate column name: owned_pause/,
  });
  assert.equal(readDatabase(path, dumpDatabase), before);
});
