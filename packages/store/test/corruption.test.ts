// Stored trajectories that changed after they were written, in rows, in a folder and in a bucket: each is an error with its own code, and
// none comes back as something else.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { RolloutError, toBinary, workerId } from '@millrace/protocol';
import { makeFailure, makeResult, makeRollout, makeTempFolder, makeTrajectory, moveUpTo } from '@millrace/testkit';
import { openBlobs } from '../src/blobs/open-blobs.ts';
import { packTrajectory, unpackTrajectory } from '../src/rows/stored-trajectory.ts';
import { openSqliteStore } from '../src/sqlite/sqlite.ts';
import type { ClaimedRollout, Store } from '../src/store.ts';

const worker = workerId.parse('w-1');
const corrupt = (id: string) => ({ code: 'trajectory-corrupt', message: new RegExp(`the stored trajectory of rollout ${id}, attempt`) });

/** Where the bytes of trajectories are, in the order of their rollouts. */
interface Place extends AsyncDisposable {
  readonly store: Store;
  /** Those of all trajectories, in the order in which they were written. */
  read(): Buffer[];
  write(index: number, bytes: Buffer): void;
}

type Kind = 'rows' | 'folder' | 'bucket';
const kinds: readonly Kind[] = ['rows', 'folder', 'bucket'];

async function openPlace(kind: Kind): Promise<Place> {
  const temp = await makeTempFolder('millrace-corruption');
  const bucket = kind === 'bucket' ? await openBucket() : undefined;
  const text = { rows: 'store', folder: `folder:${join(temp.path, 'blobs')}`, bucket: `s3://bucket?endpoint=${bucket?.url}` }[kind];
  const blobs = await openBlobs(text, { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' });
  const path = join(temp.path, 'store.db');
  const store = await openSqliteStore({ path, clock: systemClock, log: silentLog, ...(blobs && { blobs }) });
  const rows = new DatabaseSync(path);
  const found = () => rows.prepare('SELECT seq, body, blob FROM trajectories ORDER BY seq').all();
  const toFile = (blob: unknown) => join(temp.path, 'blobs', String(blob));
  await store.registerWorker({ id: worker, host: 'here', pid: 1 }, { leaseMs: 600_000 });
  return {
    store,
    read: () =>
      found().map(({ body, blob }) => {
        if (bucket) return bucket.objects.get(`/bucket/${blob}`) ?? assert.fail(`no object ${blob}`);
        return kind === 'rows' ? Buffer.from(body as Uint8Array) : readFileSync(toFile(blob));
      }),
    write(index, bytes) {
      const row = found()[index];
      if (bucket) bucket.objects.set(`/bucket/${row?.blob}`, bytes);
      else if (kind === 'folder') writeFileSync(toFile(row?.blob), bytes);
      else rows.prepare('UPDATE trajectories SET body = ? WHERE seq = ?').run(bytes, row?.seq ?? 0);
    },
    async [Symbol.asyncDispose]() {
      rows.close();
      await store[Symbol.asyncDispose]();
      await bucket?.close();
      await temp[Symbol.asyncDispose]();
    },
  };
}

/** A server with as much of the API of S3 as trajectories need. */
async function openBucket() {
  const objects = new Map<string, Buffer>();
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent(new URL(request.url ?? '', 'http://localhost').pathname);
    const body = Buffer.concat(await Array.fromAsync(request));
    if (request.method === 'PUT') objects.set(name, body);
    const held = objects.get(name);
    response.writeHead(held ? 200 : 404, { etag: '"0"' }).end(request.method === 'GET' ? held : undefined);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, objects, close: async () => void (await once(server.close(), 'close')) };
}

async function claimOne(store: Store): Promise<ClaimedRollout> {
  const [claim] = await store.claim(worker, 1);
  assert.ok(claim);
  await moveUpTo(store, claim, 'evaluate');
  return claim;
}

async function finish(store: Store, id: string): Promise<ClaimedRollout> {
  await store.submit([makeRollout(id)], { maxQueued: 1000 });
  const claim = await claimOne(store);
  await store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(id, 1) });
  return claim;
}

for (const kind of kinds)
  test(`${kind}: bytes that were flipped, cut off, emptied, doubled or replaced are an error, in both forms`, async () => {
    await using place = await openPlace(kind);
    const [{ id }, other] = [await finish(place.store, 'a'), await finish(place.store, 'b')];
    const [bytes = Buffer.alloc(0), foreign = Buffer.alloc(0)] = place.read();
    const changed: Buffer[] = [Buffer.alloc(0), Buffer.alloc(bytes.length), Buffer.concat([bytes, bytes]), Buffer.from('<h1>nginx</h1>')];
    for (const share of [0.1, 0.5, 0.9]) changed.push(bytes.subarray(0, Math.floor(share * bytes.length)));
    for (let at = 0; at < bytes.length; at += 37) changed.push(flip(bytes, 8 * at + (at % 8)));
    changed.push(foreign, zstdCompressSync(toBinary(makeTrajectory('b', 1))), zstdCompressSync(toBinary(makeTrajectory('a', 2))));
    for (const wrong of changed) {
      place.write(0, wrong);
      await assert.rejects(place.store.trajectory(id), corrupt('a'));
      await assert.rejects(place.store.binaryTrajectory(id), corrupt('a'));
    }
    assert.deepEqual(await place.store.trajectory(other.id), makeTrajectory('b', 1), 'the neighbour is whole');
    place.write(0, bytes);
    assert.deepEqual(await place.store.trajectory(id), makeTrajectory('a', 1));
  });

for (const kind of kinds)
  test(`${kind}: objects that were swapped between rollouts or attempts are not believed`, async () => {
    await using place = await openPlace(kind);
    const { store } = place;
    await store.submit([makeRollout('a')], { maxQueued: 1000 });
    await store.retry(await claimOne(store), makeFailure('backend-failed', 1), { delayMs: 0 });
    const second = await claimOne(store);
    await store.finish(second, { state: 'done', result: makeResult(1), trajectory: makeTrajectory('a', second.attempt) });
    await finish(store, 'b');
    const [a = Buffer.alloc(0), b = Buffer.alloc(0)] = place.read();
    place.write(0, b);
    place.write(1, a);
    await assert.rejects(store.trajectory(second.id), corrupt('a'));
    await assert.rejects(store.trajectory(makeRollout('b').id), corrupt('b'));
    place.write(0, (await packTrajectory(makeTrajectory('a', 1))).bytes);
    await assert.rejects(store.trajectory(second.id), corrupt('a'));
  });

test('another trajectory of the same attempt is not believed in a blob: its key has the checksum', async () => {
  await using place = await openPlace('folder');
  const { id } = await finish(place.store, 'a');
  const other = { ...makeTrajectory('a', 1), model: 'other' };
  place.write(0, (await packTrajectory(other)).bytes);
  await assert.rejects(place.store.trajectory(id), { code: 'trajectory-corrupt', message: /its checksum is [0-9a-f]{64} instead of/ });
});

test('no flipped bit of the stored bytes or of their content comes back as another trajectory', async () => {
  const wanted = { id: makeRollout('a').id, attempt: 1 };
  const { bytes } = await packTrajectory(makeTrajectory('a', 1));
  const binary = toBinary(makeTrajectory('a', 1));
  let same = 0;
  for (let bit = 0; bit < 8 * bytes.length; bit += 1) {
    const read = await unpackTrajectory(flip(bytes, bit), wanted).catch((error: unknown) => error);
    // A few bits of a zstd frame have no meaning.
    if (read instanceof Buffer && read.equals(binary)) same += 1;
    else assert.ok(read instanceof RolloutError && read.code === 'trajectory-corrupt', `bit ${bit}: ${read}`);
  }
  assert.ok(same < 16, `${same} flips changed nothing`);
  for (let bit = 0; bit < 8 * binary.length; bit += 1)
    await assert.rejects(unpackTrajectory(zstdCompressSync(flip(binary, bit)), wanted), { code: 'trajectory-corrupt' }, `bit ${bit}`);
});

test('a trajectory of an older version, without a checksum, is read, and delivered with one', async () => {
  await using place = await openPlace('rows');
  const { id } = await finish(place.store, 'a');
  const binary = toBinary(makeTrajectory('a', 1));
  const old = Buffer.concat([Buffer.from('MRT1'), binary.subarray(4, -32)]);
  place.write(0, zstdCompressSync(old));
  assert.deepEqual(await place.store.trajectory(id), makeTrajectory('a', 1));
  assert.deepEqual(await place.store.binaryTrajectory(id), binary);
  const foreign = toBinary(makeTrajectory('b', 1));
  for (const wrong of [old.subarray(0, -4), Buffer.concat([Buffer.from('MRT1'), foreign.subarray(4, -32)])]) {
    place.write(0, zstdCompressSync(wrong));
    await assert.rejects(place.store.trajectory(id), corrupt('a'));
  }
});

test('retention drops the text of the others when one trajectory is corrupt', async () => {
  await using place = await openPlace('folder');
  await finish(place.store, 'a');
  const { id } = await finish(place.store, 'b');
  place.write(0, Buffer.from('x'));
  while ((await place.store.trajectory(id))?.textDropped !== true)
    await place.store.retain({ endedMs: 600_000, eventsMs: 600_000, textMs: 1 });
});

function flip(bytes: Buffer, bit: number): Buffer {
  const flipped = Buffer.from(bytes);
  flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return flipped;
}
