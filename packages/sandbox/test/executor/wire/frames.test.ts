// The frame codec with cut, joined and hostile bytes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeFrame, openFrameReader } from '../../../src/executor/wire/frames.ts';

const limits = { headBytes: 100, bodyBytes: 1000 };

test('frames arrive whole wherever they are cut or joined', () => {
  const frames = [
    { head: { id: 1 }, body: Buffer.from('abc') },
    { head: 'é', body: Buffer.alloc(0) },
    { head: [], body: Buffer.alloc(999, 7) },
  ];
  const bytes = Buffer.concat(frames.map(({ head, body }) => encodeFrame(head, body)));
  for (const chunkBytes of [1, 3, 8, 9, 500, bytes.length]) {
    const read = openFrameReader(limits);
    const seen = [];
    for (let at = 0; at < bytes.length; at += chunkBytes) seen.push(...read(bytes.subarray(at, at + chunkBytes)));
    assert.deepEqual(seen, frames);
  }
});

test('a frame that is too large is rejected from its lengths alone', () => {
  const lengths = encodeFrame({}, Buffer.alloc(1001)).subarray(0, 8);
  assert.throws(() => openFrameReader(limits)(lengths), /exceeds the limit/);
});

test('a head that is not JSON throws', () => {
  const frame = encodeFrame('x');
  frame[8] = 0x7b;
  assert.throws(() => openFrameReader(limits)(frame), SyntaxError);
});
