// The shelf gives back what was saved or nothing, and holds no more than its limit.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { CheckpointShelf } from '../../src/checkpoint/checkpoint-shelf.ts';

const checkpoint = { cwd: "/work space/a'b\n", archive: Buffer.from([0, 10, 255, 1]), memory: '{"a":1}' };

test('a checkpoint is read as it was saved, by its own rollout, and not if a byte of it was changed', async () => {
  await using folder = await makeTempFolder('shelf');
  const shelf = new CheckpointShelf({ runDir: folder.path, maxBytes: 1 << 20 });
  const [id, other] = [randomUUID(), randomUUID()];
  await shelf.save('a/../b', id, checkpoint);
  assert.deepEqual(await shelf.load('a/../b', id), checkpoint);
  assert.equal(await shelf.load('a', id), undefined);
  assert.equal(await shelf.load('a/../b', other), undefined);
  assert.equal(await shelf.load('a/../b', '../../x'), undefined);
  const [name = ''] = await readdir(join(folder.path, 'checkpoints'));
  const path = join(folder.path, 'checkpoints', name, id);
  const bytes = await readFile(path);
  for (const at of [3, bytes.indexOf('work'), bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8((changed.readUInt8(at) + 1) % 256, at);
    await writeFile(path, changed);
    assert.equal(await shelf.load('a/../b', id), undefined, `byte ${at}`);
  }
  await writeFile(path, bytes.subarray(0, -1));
  assert.equal(await shelf.load('a/../b', id), undefined, 'torn');
});

test('a checkpoint that is shared is found on another machine, until its rollout ends', async () => {
  await using folder = await makeTempFolder('shelf');
  const shared = join(folder.path, 'shared');
  const [one, other] = ['a', 'b'].map((name) => new CheckpointShelf({ runDir: join(folder.path, name), maxBytes: 1 << 20, shared }));
  const [id, kept] = [randomUUID(), randomUUID()];
  await one?.save('r', id, checkpoint);
  await one?.save('r', kept, checkpoint);
  await one?.share('r', kept, { keepsAll: true });
  assert.equal(await other?.load('r', id), undefined);
  assert.deepEqual(await other?.load('r', kept), checkpoint);
  for (let more = 0; more < 3; more += 1) {
    const next = randomUUID();
    await one?.save('r', next, checkpoint);
    await one?.share('r', next, { keepsAll: false });
  }
  const [folderOfIt = ''] = await readdir(shared);
  assert.equal((await readdir(join(shared, folderOfIt))).length, 2);
  await other?.remove('r');
  assert.deepEqual(await readdir(shared), []);
  assert.deepEqual(await one?.load('r', kept), checkpoint, 'its own is left to its sweep');
});

test('a sweep removes what ended rollouts left, and the oldest above the limit; a young one of a rollout that lives stays', async () => {
  await using folder = await makeTempFolder('shelf');
  const shelf = new CheckpointShelf({ runDir: folder.path, maxBytes: 250 });
  await shelf.save('ended', randomUUID(), checkpoint);
  await shelf.save('live', randomUUID(), checkpoint);
  const hasEnded = async (rollout: string) => rollout === 'ended';
  const count = async () => (await readdir(join(folder.path, 'checkpoints'))).length;
  const later = Date.now() + 60_000;
  await shelf.sweep(hasEnded, 0);
  assert.equal(await count(), 1, 'two are too much');
  await shelf.sweep(async () => true, 0);
  assert.equal(await count(), 1, 'it is too young to be looked up');
  await shelf.sweep(async () => true, later);
  assert.equal(await count(), 0);
  await shelf.sweep(hasEnded, later);
  assert.equal(shelf.isFull, false);
});
