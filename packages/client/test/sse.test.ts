// Frames from bytes that arrive in any pieces.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFrames } from '../src/sse.ts';

async function frames(chunks: readonly Uint8Array[]) {
  return Array.fromAsync(
    readFrames(
      (async function* () {
        yield* chunks;
      })(),
    ),
  );
}

test('frames are the same however the bytes are cut, within characters too', async () => {
  const bytes = Buffer.from(': hello\n\nid: 1\nevent: turn-end\ndata: {"a":"é€"}\n\nid:2\r\ndata:x\r\ndata: y\r\n\r\ndata: cut');
  const wanted = [
    { id: '1', event: 'turn-end', data: '{"a":"é€"}' },
    { id: '2', data: 'x\ny' },
  ];
  assert.deepEqual(await frames([bytes]), wanted);
  for (const size of [1, 2, 3, 7]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
    assert.deepEqual(await frames(chunks), wanted, `pieces of ${size}`);
  }
});
