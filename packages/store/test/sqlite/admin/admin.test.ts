// What an administrator does with a store's file: statistics, compaction, backups and restoring, while a service writes to it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { workerId } from '@millrace/protocol';
import { makeBatch, makeGroup, makeResult, makeRollout, makeTrajectory, moveUpTo } from '@millrace/testkit';
import { backupStore, restoreStore } from '../../../src/sqlite/admin/backup.ts';
import { compactStore, compactWholeStore } from '../../../src/sqlite/admin/compact.ts';
import { readStoreStats } from '../../../src/sqlite/admin/stats.ts';
import { openSqliteStore } from '../../../src/sqlite/sqlite.ts';
import type { Store } from '../../../src/store.ts';
import { openSqliteBed } from '../bed.ts';

const roomy = { maxQueued: 1_000_000 };
const keepNothing = { replace: false, suffix: 'before' };

/** Rollouts with large tasks; all but the last have ended. */
async function fill(store: Store, count: number): Promise<void> {
  const worker = workerId.parse('w-1');
  await store.registerWorker({ id: worker, host: 'here', pid: 1 }, { leaseMs: 600_000 });
  const rollouts = Array.from({ length: count }, (_, n) => makeRollout(`r${n}`, { task: { text: `${n} `.repeat(4000) } }));
  await store.submit(rollouts, roomy);
  for (const claim of await store.claim(worker, count - 1)) {
    await moveUpTo(store, claim, 'evaluate');
    await store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, 1) });
  }
}

/** Makes most of a filled file reusable. Returns its size. */
function deleteTasks(path: string): number {
  const db = new DatabaseSync(path);
  db.exec('DELETE FROM submissions WHERE seq > 10; PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
  return statSync(path).size;
}

test('the statistics count rows and bytes by table and rollouts by outcome, while the store is open', async () => {
  await using bed = await openSqliteBed();
  await fill(bed.store, 20);
  await bed.store.createBatch(makeBatch('b'));
  await bed.store.beginGroup(makeGroup('b', 0));
  const stats = await readStoreStats(bed.path);
  const outcomes = Object.fromEntries(stats.outcomes.map((one) => [one.outcome, one]));
  assert.equal(outcomes.plain?.rollouts, 19);
  assert.equal(outcomes.plain?.trajectories, 19);
  assert.ok((outcomes.plain?.trajectoryBytes ?? 0) > 19);
  assert.ok((outcomes.plain?.oldestMs ?? 0) > 0);
  assert.ok((outcomes.unfinished?.rollouts ?? 0) > 1);
  const submissions = stats.tables.find(({ name }) => name === 'submissions');
  assert.ok((submissions?.bytes ?? 0) > 20 * 8000);
  assert.ok((submissions?.rows ?? 0) >= 21);
  assert.equal(stats.canCompact, true);
});

test('compacting gives the space of deleted rows back in steps, while the service writes', async () => {
  await using bed = await openSqliteBed();
  await fill(bed.store, 400);
  const before = deleteTasks(bed.path);
  const { reusableBytes } = await bed.store.size();
  assert.ok(reusableBytes > 3_000_000, `${reusableBytes} bytes can be used again`);
  const writes: Promise<unknown>[] = [];
  const report = await compactStore(bed.path, {
    onStep: () => void writes.push(bed.store.submit([makeRollout(`during-${writes.length}`)], roomy)),
  });
  await Promise.all(writes);
  assert.ok(report.steps > 2, `${report.steps} steps`);
  assert.ok(report.freedBytes > 0.9 * reusableBytes);
  assert.ok(report.longestLockMs > 0 && report.longestLockMs <= report.lockMs);
  assert.ok(statSync(bed.path).size < before - 0.9 * reusableBytes, 'the file is smaller');
  assert.ok((await bed.store.get(makeRollout('during-0').id)) !== undefined);
  assert.ok((await compactStore(bed.path)).freedBytes < 0.01 * reusableBytes, 'nothing is left to give back');
});

/** Commits all the time, from another thread: each commit may fall into the copy of the log. */
const restlessWriter = `
const { parentPort, workerData } = require('node:worker_threads');
const db = new (require('node:sqlite').DatabaseSync)(workerData, { timeout: 60_000 });
db.exec('PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0');
const write = db.prepare('UPDATE submissions SET body = ? WHERE seq = 1');
setInterval(() => { for (let n = 0; n < 20; n += 1) write.run(String(n)); parentPort.postMessage('wrote'); }, 1);`;

test('after compacting the file is smaller even if others write without a pause', async () => {
  for (let round = 0; round < 4; round += 1) {
    await using bed = await openSqliteBed();
    await fill(bed.store, 100);
    const before = deleteTasks(bed.path);
    await using writer = new Worker(restlessWriter, { eval: true, workerData: bed.path });
    await once(writer, 'message');
    const { freedBytes } = await compactStore(bed.path);
    assert.ok(freedBytes > 500_000, `${freedBytes} bytes were given back`);
    assert.ok(statSync(bed.path).size < before - 0.9 * freedBytes, `the file is smaller in round ${round}`);
  }
});

test('a reader delays the end of compacting, and the file is smaller all the same', async () => {
  await using bed = await openSqliteBed();
  await fill(bed.store, 400);
  const before = deleteTasks(bed.path);
  const reader = new DatabaseSync(bed.path);
  reader.exec('BEGIN; SELECT count(*) FROM submissions');
  const { freedBytes } = await compactStore(bed.path, { onStep: (left) => left === 0 && setTimeout(() => reader.close(), 100) });
  assert.ok(freedBytes > 3_000_000);
  assert.ok(statSync(bed.path).size < before - 0.9 * freedBytes, 'the file is smaller');
});

test('a file of an older version is compacted as a whole, and only while no service has it open', async () => {
  await using bed = await openSqliteBed();
  await fill(bed.store, 200);
  const old = join(dirname(bed.path), 'old.db');
  const db = new DatabaseSync(bed.path);
  db.exec(`PRAGMA auto_vacuum = NONE; VACUUM INTO '${old}'`);
  db.close();
  const copy = new DatabaseSync(old);
  copy.exec('DELETE FROM submissions WHERE seq > 10');
  copy.close();
  assert.equal((await readStoreStats(old)).canCompact, false);
  await assert.rejects(compactStore(old), /old\.db was made by a version that cannot .* compact --whole/);
  const service = await openSqliteStore({ path: old, clock: systemClock, log: silentLog });
  assert.throws(() => compactWholeStore(old), /old\.db is in use: stop the service first/);
  await service[Symbol.asyncDispose]();
  assert.ok(compactWholeStore(old).freedBytes > 1_000_000);
  assert.equal((await readStoreStats(old)).canCompact, true);
});

test('a backup made while the service writes has every rollout up to one moment and none after it, and opens as a store', async () => {
  await using bed = await openSqliteBed();
  await fill(bed.store, 50);
  const target = join(dirname(bed.path), 'backup.db');
  let isDone = false;
  const writing = (async () => {
    for (let n = 0; !isDone; n += 1) await bed.store.submit([makeRollout(`w${n}`), makeRollout(`w${n}-twin`)], roomy);
  })();
  await bed.store.submit([makeRollout('before')], roomy);
  const report = backupStore(bed.path, target);
  isDone = true;
  await writing;
  assert.equal(statSync(target).mode & 0o077, 0, 'it has the keys of backends: only its owner can read it');
  await using copy = await openSqliteStore({ path: target, clock: systemClock, log: silentLog });
  const { rollouts } = await copy.list({ limit: 10_000 });
  assert.equal(rollouts.length, report.rollouts);
  assert.ok(rollouts.some(({ id }) => id === 'before'));
  const singles = rollouts.filter(({ id }) => /^w\d/.test(id));
  assert.equal(singles.length % 2, 0, 'a submission of two is there as a whole or not at all');
  assert.deepEqual(await copy.trajectory(makeRollout('r0').id), await bed.store.trajectory(makeRollout('r0').id));
  assert.throws(() => backupStore(bed.path, target), /backup\.db exists: name a new file/);
  assert.throws(() => backupStore(bed.path, '/nope/b.db'), /\/nope\/b\.db cannot be written: there is no folder \/nope$/);
  assert.equal((await readStoreStats(target)).canCompact, true);
});

test('restoring refuses a store in use, one with rollouts, a damaged backup and an unknown schema, and keeps what it replaces', async () => {
  await using bed = await openSqliteBed();
  await fill(bed.store, 5);
  const folder = dirname(bed.path);
  const [backup, target] = [join(folder, 'backup.db'), join(folder, 'there', 'millrace.db')];
  backupStore(bed.path, backup);
  assert.throws(() => restoreStore(backup, bed.path, { ...keepNothing, replace: true }), /store\.db is in use: stop the service first/);
  assert.equal(restoreStore(backup, target, keepNothing).rollouts, 5);
  assert.throws(() => restoreStore(backup, target, keepNothing), /has 5 rollouts and 0 batches: to replace it, add --replace/);
  {
    await using later = await openSqliteStore({ path: target, clock: systemClock, log: silentLog });
    await later.submit([makeRollout('later')], roomy);
  }
  const { kept } = restoreStore(backup, target, { replace: true, suffix: 'before-monday' });
  assert.equal(kept, `${target}.before-monday`);
  await using restored = await openSqliteStore({ path: target, clock: systemClock, log: silentLog });
  await using earlier = await openSqliteStore({ path: kept ?? '', clock: systemClock, log: silentLog });
  assert.equal(await restored.get(makeRollout('later').id), undefined);
  assert.ok(await earlier.get(makeRollout('later').id));

  const damaged = join(folder, 'damaged.db');
  backupStore(bed.path, damaged);
  truncateSync(damaged, statSync(damaged).size - 8192);
  const other = join(folder, 'other', 'millrace.db');
  assert.throws(() => restoreStore(damaged, other, keepNothing), /damaged\.db/);
  const newer = new DatabaseSync(join(folder, 'newer.db'));
  newer.exec('PRAGMA user_version = 99');
  newer.close();
  assert.throws(() => restoreStore(join(folder, 'newer.db'), other, keepNothing), /schema 99.* a newer version wrote it/s);
  writeFileSync(join(folder, 'text.db'), 'not a database '.repeat(100));
  assert.throws(() => restoreStore(join(folder, 'text.db'), other, keepNothing), /text\.db/);
  assert.equal(existsSync(other), false);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.endsWith('.partial')),
    [],
  );
});
