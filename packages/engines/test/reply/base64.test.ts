// Base64 from bytes to bytes: every length is read back, and nothing else is accepted.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { decodeBase64 } from '../../src/reply/base64.ts';

function decode(text: string): Buffer {
  const into = new Uint8Array(text.length + 1);
  return Buffer.from(into.subarray(0, decodeBase64(Buffer.from(text), into)));
}

test('every length of bytes is read back as it was', () => {
  for (let length = 0; length < 300; length++) {
    const bytes = randomBytes(length);
    assert.deepEqual(decode(bytes.toString('base64')), bytes);
  }
});

test('a wrong length, a foreign character and padding in the middle are refused', () => {
  for (const text of ['A', 'AAA', 'AAAAA', 'AA-A', 'AA A', 'AA=A', 'AA==AAAA', 'A===', 'AAA\u00e9', '===='])
    assert.throws(() => decode(text), /base64/, text);
});
