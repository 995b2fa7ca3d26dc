// Trajectories in a bucket of a real S3 server: the contract suite of blob stores, and a store that uses it.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { workerId } from '@millrace/protocol';
import { openBlobs, openSqliteStore } from '@millrace/store';
import { defineBlobSuite, makeResult, makeRollout, makeTempFolder, makeTrajectory, moveUpTo } from '@millrace/testkit';
import type { EngineProcess } from '../engines/engine-process.ts';
import { openVersitygw, s3Credentials } from '../engines/versitygw.ts';

let server: EngineProcess | undefined;
let folder: Awaited<ReturnType<typeof makeTempFolder>> | undefined;

before(async () => {
  folder = await makeTempFolder('millrace-s3');
  await mkdir(join(folder.path, 'bucket'));
  server = await openVersitygw(folder.path);
});

after(async () => {
  await server?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

let beds = 0;
const placeOf = (bucket: string, prefix: string) => `s3://${bucket}/${prefix}?endpoint=${server?.url}`;

async function open(place: string, env: Record<string, string> = s3Credentials) {
  const blobs = await openBlobs(place, env);
  assert.ok(blobs);
  return blobs;
}

defineBlobSuite('blobs in a bucket', async () => {
  const place = placeOf('bucket', `bed-${beds++}/inner`);
  const [blobs, other] = [await open(place), await open(place)];
  return { blobs, another: () => other, [Symbol.asyncDispose]: async () => {} };
});

test('a store keeps its trajectories in a bucket, reads them back, and removes them after their rows', async () => {
  await using temp = await makeTempFolder('millrace-s3-store');
  const blobs = await open(placeOf('bucket', 'store'));
  await using store = await openSqliteStore({ path: join(temp.path, 'store.db'), clock: systemClock, log: silentLog, blobs });
  const worker = workerId.parse('w-1');
  await store.registerWorker({ id: worker, host: 'here', pid: 1 }, { leaseMs: 600_000 });
  await store.submit([makeRollout('a')], { maxQueued: 9 });
  const [claim] = await store.claim(worker, 1);
  assert.ok(claim);
  await moveUpTo(store, claim, 'evaluate');
  await store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory('a', 1) });
  assert.deepEqual(await store.trajectory(claim.id), makeTrajectory('a', 1));
  await store.checkHealth();
  while ((await store.retain({ endedMs: 1, eventsMs: 1 })) === 0);
  assert.equal(await store.removeBlobs({ sweep: true }), 1);
  const left = (await Array.fromAsync(blobs.list('trajectories/'))).map(({ key }) => key);
  assert.deepEqual(
    left.filter((key) => !key.endsWith('/health')),
    [],
  );
});

test('wrong credentials, an unknown bucket and a server that is gone are faults, and not missing blobs', async () => {
  const wrong = await open(placeOf('bucket', 'x'), { AWS_ACCESS_KEY_ID: 'millrace', AWS_SECRET_ACCESS_KEY: 'wrong' });
  await assert.rejects(wrong.get('a/b'), /./);
  await assert.rejects(wrong.put('a/b', Buffer.from('x')), /./);
  const unknown = await open(placeOf('no-such-bucket', 'x'));
  await assert.rejects(unknown.get('a/b'), /./);
  await using temp = await makeTempFolder('millrace-s3-gone');
  await mkdir(join(temp.path, 'bucket'));
  await using short = await openVersitygw(temp.path);
  const gone = await open(`s3://bucket/x?endpoint=${short.url}`);
  await gone.put('a/b', Buffer.from('x'));
  short.signal('SIGKILL');
  await short.exited();
  await assert.rejects(gone.get('a/b'), /./);
  await assert.rejects(gone.put('a/b', Buffer.from('x')), /./);
});
