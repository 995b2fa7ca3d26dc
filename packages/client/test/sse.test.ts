// Server-sent events from bytes that arrive in any pieces.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readMessages } from '../src/sse.ts';

async function read(chunks: readonly Uint8Array[]) {
  const bytes = (async function* () {
    yield* chunks;
  })();
  const messages = await Array.fromAsync(readMessages(bytes));
  return messages.map(({ id, event, data }) => ({ id, event, data }));
}

test('messages are the same however the bytes are split, even inside a character', async () => {
  const bytes = Buffer.from(': hello\n\nid: 1\nevent: turn-end\ndata: {"a":"é€"}\n\nid:2\r\ndata:x\r\ndata: y\r\n\r\ndata: cut');
  const expected = [
    { id: '1', event: 'turn-end', data: '{"a":"é€"}' },
    { id: '2', event: undefined, data: 'x\ny' },
  ];
  assert.deepEqual(await read([bytes]), expected);
  for (const size of [1, 2, 3, 7]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
    assert.deepEqual(await read(chunks), expected, `pieces of ${size}`);
  }
});
