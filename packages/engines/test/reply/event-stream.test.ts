// Events are read as the standard says, however the network splits their bytes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEventReader } from '../../src/reply/event-stream.ts';

function readIn(...chunks: readonly Buffer[]): string[] {
  const data: string[] = [];
  const read = openEventReader((text) => data.push(text));
  for (const chunk of chunks) read(chunk);
  return data;
}

const llama = '{"text":"🦙é"}';
const cases: readonly [string, string, readonly string[]][] = [
  ['lines that end in LF', `data: ${llama}\n\ndata: 2\n\n`, [llama, '2']],
  ['lines that end in CRLF', `data: ${llama}\r\n\r\ndata: 2\r\n\r\n`, [llama, '2']],
  ['lines that end in CR', `data: ${llama}\r\rdata: 2\r\r`, [llama, '2']],
  ['data without a space', `data:${llama}\n\n`, [llama]],
  ['data on several lines', `data: {"text":\ndata: "🦙é"}\n\n`, ['{"text":\n"🦙é"}']],
  ['comments and other fields', `: ping\n\nevent: token\nid: 7\ndata: ${llama}\n\n`, [llama]],
  ['nothing after [DONE]', `data: ${llama}\n\ndata: [DONE]\n\ndata: 3\n\n`, [llama]],
  ['no event without its blank line', `data: ${llama}\n\ndata: 2\n`, [llama]],
];

for (const [what, text, wanted] of cases) {
  test(`an event stream is read the same wherever it is split: ${what}`, () => {
    const bytes = Buffer.from(text);
    for (let at = 0; at <= bytes.length; at++)
      assert.deepEqual(readIn(bytes.subarray(0, at), bytes.subarray(at)), wanted, `split at ${at}`);
    assert.deepEqual(readIn(...Array.from(bytes, (byte) => Buffer.of(byte))), wanted);
  });
}
