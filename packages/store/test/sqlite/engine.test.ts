// What the SQLite store promises in addition to the contract: other processes, full disks, invalid files, and speed.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { workerId } from '@millrace/protocol';
import { makeReport, makeResult, makeRollout, makeTempFolder, makeTrajectory, moveUpTo } from '@millrace/testkit';
import { openSqliteStore } from '../../src/sqlite/sqlite.ts';
import { limitFileSize, openSqliteBed } from './bed.ts';

const roomy = { maxQueued: 1_000_000 };

test('a hint reaches another process, even after a checkpoint', async () => {
  await using bed = await openSqliteBed();
  const child = fork(new URL('./loop.ts', import.meta.url), [bed.path, 'listen']);
  try {
    assert.deepEqual(await once(child, 'message'), ['ready', undefined]);
    for (const id of ['a', 'b', 'c', 'd']) {
      const hinted = once(child, 'message');
      await bed.store.submit([makeRollout(id)], roomy);
      assert.deepEqual((await hinted)[0], { queued: id.charCodeAt(0) - 96 });
      checkpoint(bed.path);
    }
  } finally {
    child.kill('SIGKILL');
  }
});

test('only the owner can read the file', async () => {
  await using bed = await openSqliteBed();
  for (const end of ['', '-wal', '-shm', '-hint']) assert.equal(statSync(bed.path + end).mode & 0o077, 0, end);
});

test('a file that is not a database, or has an unknown schema, is refused by name', async () => {
  await using folder = await makeTempFolder('millrace-store');
  const open = (path: string) => openSqliteStore({ path, clock: systemClock, log: silentLog });
  const nonsense = join(folder.path, 'nonsense.db');
  writeFileSync(nonsense, 'these are not the bytes of a database '.repeat(50));
  await assert.rejects(open(nonsense), { code: 'internal', message: /nonsense\.db: SQLITE_NOTADB/ });
  const newer = join(folder.path, 'newer.db');
  const db = new DatabaseSync(newer);
  db.exec('PRAGMA user_version = 99');
  db.close();
  await assert.rejects(open(newer), { code: 'internal', message: /schema 99, and .* a newer version wrote it: start that version/ });
  await assert.rejects(open(join(nonsense, 'store.db')), {
    code: 'internal',
    message: /nonsense\.db\/store\.db: E/,
  });
});

test('writes on a full disk fail by name, lose nothing that was acknowledged, and succeed once there is space', async () => {
  await using bed = await openSqliteBed();
  await bed.store.submit([makeRollout('before')], roomy);
  limitFileSize(String(statSync(`${bed.path}-wal`).size + 20_000));
  try {
    const big = Array.from({ length: 50 }, (_, index) => makeRollout(`big${index}`, { task: { text: 'x'.repeat(4_000) } }));
    await assert.rejects(bed.store.submit(big, roomy), { code: 'internal', message: /store\.db: EIO, SQLITE_IOERR: / });
    assert.deepEqual(
      (await bed.store.list({ limit: 99 })).rollouts.map(({ id }) => id),
      ['before'],
    );
  } finally {
    limitFileSize('unlimited');
  }
  await bed.store.submit([makeRollout('after')], roomy);
  const reopened = await bed.another();
  assert.deepEqual(
    (await reopened.list({ limit: 99 })).rollouts.map(({ id }) => id),
    ['before', 'after'],
  );
});

test('concurrent writers wait for each other, and none fails because the file is busy', async () => {
  await using bed = await openSqliteBed();
  const stores = [bed.store, await bed.another(), await bed.another()];
  const ids = Array.from({ length: 60 }, (_, index) => `r${index}`);
  await Promise.all(
    stores.map(async (store) => {
      for (const id of ids) assert.equal((await store.submit([makeRollout(id)], roomy)).kind, 'accepted');
    }),
  );
  assert.equal((await bed.store.counts()).queued, 60);
});

test('a lock held for longer than a lease costs no worker its rollouts', async () => {
  await using bed = await openSqliteBed();
  const [own, other] = [bed.store, await bed.another()];
  const options = { leaseMs: 800, maxLosses: 3 };
  const worker = workerId.parse('w');
  await own.registerWorker({ id: worker, host: 'h', pid: 1 }, options);
  const db = new DatabaseSync(bed.path);
  db.exec('BEGIN IMMEDIATE');
  const expiry = other.expire(options);
  const renewal = own.renew(worker, { ...options, report: makeReport(0) });
  await setTimeout(1600);
  db.exec('COMMIT');
  db.close();
  assert.equal((await renewal).alive, true);
  assert.deepEqual(await Promise.all([expiry, own.expire(options), other.expire(options)]), [0, 0, 0]);
  assert.ok(((await own.workers())[0]?.leaseUntilMs ?? 0) > Date.now(), 'the lease starts when it is written');
});

test('ten thousand rollouts are accepted in one call, and claiming takes as long as from a short queue', async () => {
  const measure = async (length: number) => {
    await using bed = await openSqliteBed();
    const worker = workerId.parse('w');
    await bed.store.registerWorker({ id: worker, host: 'h', pid: 1 }, { leaseMs: 600_000 });
    const many = Array.from({ length }, (_, index) => makeRollout(`r${index}`));
    assert.equal((await bed.store.submit(many, roomy)).kind, 'accepted');
    const claimsMs: number[] = [];
    for (let n = 0; n < 80; n++) {
      const start = performance.now();
      assert.equal((await bed.store.claim(worker, 1)).length, 1);
      claimsMs.push(performance.now() - start);
    }
    return Math.min(...claimsMs); // the others waited for a core
  };
  const [short, long] = [await measure(100), await measure(10_000)];
  assert.ok(long < 10 * short, `a claim took ${long} ms of a long queue, and ${short} ms of a short one`);
});

test('a large trajectory is read back unchanged', async () => {
  await using bed = await openSqliteBed();
  const worker = workerId.parse('w');
  await bed.store.registerWorker({ id: worker, host: 'h', pid: 1 }, { leaseMs: 600_000 });
  await bed.store.submit([makeRollout('a')], roomy);
  const [claim] = await bed.store.claim(worker, 1);
  assert.ok(claim);
  await moveUpTo(bed.store, claim, 'evaluate');
  const small = makeTrajectory('a', 1);
  const tokenIds = Int32Array.from({ length: 1_000_000 }, (_, index) => (index * 7919) % 151_936);
  const logprobs = Float32Array.from(tokenIds, (id) => -Math.sqrt(id));
  const trajectory = {
    ...small,
    segments: small.segments.map((segment) => (segment.kind === 'sampled' ? { ...segment, tokenIds, logprobs } : segment)),
  };
  await bed.store.finish(claim, { state: 'done', result: makeResult(1), trajectory });
  assert.deepEqual(await bed.store.trajectory(claim.id), trajectory);
});

function checkpoint(path: string): void {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
}
