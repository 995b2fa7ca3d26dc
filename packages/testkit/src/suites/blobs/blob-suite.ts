// The contract suite of blob stores: every promise of the contract as a test, for any implementation.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import type { BlobStore } from '@millrace/store';

/** `another` opens the same blobs as another process would. */
export interface BlobBed extends AsyncDisposable {
  readonly blobs: BlobStore;
  another(): BlobStore;
}

export function defineBlobSuite(name: string, openBed: () => Promise<BlobBed>): void {
  describe(name, () => {
    test('what was put is read by every process, bit for bit, and putting again replaces it', async () => {
      await using bed = await openBed();
      for (const bytes of [randomBytes(0), randomBytes(1), randomBytes(3_000_000)]) {
        await bed.blobs.put('a/b/key-1.x_y', bytes);
        assert.deepEqual(await bed.another().get('a/b/key-1.x_y'), bytes);
      }
    });

    test('a key that does not exist reads as absent, and is deleted without an error', async () => {
      await using bed = await openBed();
      assert.equal(await bed.blobs.get('a/none'), undefined);
      await bed.blobs.put('a/one', Buffer.from('1'));
      assert.equal(await bed.blobs.get('a/none'), undefined);
      assert.equal(await bed.blobs.get('a'), undefined);
      await bed.blobs.delete(['a/none', 'a/one', 'b/none']);
      assert.equal(await bed.blobs.get('a/one'), undefined);
    });

    test('a list has exactly the keys with the prefix, with sizes and times', async () => {
      await using bed = await openBed();
      const startedAtMs = Date.now();
      const keys = Array.from({ length: 30 }, (_, n) => `list/${n % 3}/k${n}`);
      for (const [n, key] of keys.entries()) await bed.blobs.put(key, Buffer.alloc(n));
      await bed.blobs.put('other/k', Buffer.from('x'));
      const read = async (prefix: string) => (await Array.fromAsync(bed.blobs.list(prefix))).map(({ key }) => key).toSorted();
      assert.deepEqual(await read('list/'), keys.toSorted());
      assert.deepEqual(await read('list/1/'), keys.filter((_, n) => n % 3 === 1).toSorted());
      assert.deepEqual(await read('nowhere/'), []);
      const [entry] = (await Array.fromAsync(bed.blobs.list('list/'))).filter(({ key }) => key === 'list/2/k5');
      assert.equal(entry?.bytes, 5);
      // The clock of the blob store may count whole seconds.
      assert.ok((entry?.changedAtMs ?? 0) > startedAtMs - 60_000);
    });

    test('blobs that are written at once do not mix', async () => {
      await using bed = await openBed();
      const all = Array.from({ length: 20 }, (_, n) => ({ key: `many/k${n}`, bytes: randomBytes(20_000 + n) }));
      await Promise.all(all.map(({ key, bytes }) => bed.blobs.put(key, bytes)));
      for (const { key, bytes } of all) assert.deepEqual(await bed.blobs.get(key), bytes);
    });

    test('a key that could leave its place is refused', async () => {
      await using bed = await openBed();
      for (const key of ['', '../x', 'a/../x', '/a', 'a//b', 'a/', 'a b', '.hidden']) {
        await assert.rejects(bed.blobs.put(key, Buffer.from('x')), /is not the key of a blob/);
        await assert.rejects(bed.blobs.get(key), /is not the key of a blob/);
      }
    });
  });
}
