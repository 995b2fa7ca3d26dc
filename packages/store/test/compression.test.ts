// Stored trajectories: compressed and read back, in one piece or not at all.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { compress, decompress, readContentLength } from '../src/rows/compression.ts';

test('every length is read back, and known from the head of its frame', async () => {
  for (const length of [0, 1, 63, 64, 255, 256, 257, 65_535, 65_791, 65_792, 1_000_000]) {
    for (const bytes of [randomBytes(length), Buffer.alloc(length)]) {
      const frame = await compress(bytes);
      if (length > 0) assert.equal(readContentLength(frame), length);
      assert.deepEqual(await decompress(frame), bytes);
    }
  }
});

test('a frame without its length is read all the same, and half a frame is an error', async () => {
  const bytes = randomBytes(200_000);
  assert.deepEqual(await decompress(zstdCompressSync(bytes)), bytes);
  await assert.rejects(decompress((await compress(bytes)).subarray(0, 1000)));
});
