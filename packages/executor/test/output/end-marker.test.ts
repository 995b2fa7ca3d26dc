// The end marker of a command is found wherever it is in the stream.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMarkerScan } from '../../src/output/end-marker.ts';

const marker = '\x1b]8517;abcdefghijkl;130\x07';

function scanAll(text: string, chunkBytes: number): { output: string; exitCode: number | undefined; rest: string } {
  const scan = openMarkerScan('abcdefghijkl');
  const bytes = Buffer.from(text);
  let output = '';
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const { output: piece, end } = scan(bytes.subarray(at, at + chunkBytes));
    output += piece;
    if (end) return { output, exitCode: end.exitCode, rest: end.rest.toString() + bytes.subarray(at + chunkBytes) };
  }
  return { output, exitCode: undefined, rest: '' };
}

test('the marker is found wherever the stream is cut into chunks', () => {
  for (let chunkBytes = 1; chunkBytes < 60; chunkBytes += 1) {
    assert.deepEqual(scanAll(`out\x1b[0mput${marker}late`, chunkBytes), { output: 'out\x1b[0mput', exitCode: 130, rest: 'late' });
  }
});

test('a marker with another nonce is passed on as output', () => {
  const text = marker.replace('abc', 'xyz');
  assert.deepEqual(scanAll(text, 5), { output: text, exitCode: undefined, rest: '' });
});

test('a marker that never ends is passed on as output, not held back forever', () => {
  const text = `${marker.slice(0, -1)}${'9'.repeat(100)}`;
  assert.ok(scanAll(text, 7).output.length > 80);
});
