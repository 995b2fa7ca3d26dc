// What the terminal's bytes look like as text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openOutputCap } from '../../src/output/output.ts';
import { renderOutput, renderTerminal } from '../../src/output/render.ts';

const cases: [claim: string, bytes: string, text: string][] = [
  ['plain text stays', 'a\tb\n', 'a\tb\n'],
  ['colours go', '\x1b[1;31mred\x1b[0m', 'red'],
  ['titles and links go', '\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b', 'ab'],
  ['character sets and keypad modes go', '\x1b(B\x1b=x\x1b>', 'x'],
  ['a title without end loses its introducer only', '\x1b]0;kept\nkept', '0;kept\nkept'],
  ['a sequence without end goes', 'a\x1b[', 'a'],
  ['carriage return and newline are one newline', 'a\r\nb\r\n', 'a\nb\n'],
  ['a carriage return writes over the line', 'abc\rX', 'Xbc'],
  ['a progress bar leaves its last state', '10%\r20%\r100%\n', '100%\n'],
  ['erasing to the end of the line', 'Downloading\r\x1b[Kdone', 'done'],
  ['erasing the whole line', 'abc\x1b[2K\rx', 'x'],
  ['erasing to the beginning', 'abcd\r\x1b[1Kx', 'xbcd'],
  ['a backspace goes one back', 'abd\bc', 'abc'],
  ['a bold word of a manual page', 'b\bbo\bol\bld\bd', 'bold'],
  ['other control characters go', 'a\x00b\x01c\x07d\x7fe\u0085f', 'abcdef'],
  ['flow control is not taken for an erasure', 'abc\r\x11\x13', 'abc'],
  ['a wide character is one place', '€uro\r$', '$uro'],
];
for (const [claim, bytes, text] of cases) test(claim, () => assert.equal(renderTerminal(bytes), text));

function render(bytes: Buffer, capBytes: number, chunkBytes: number): string {
  const cap = openOutputCap(capBytes);
  for (let at = 0; at < bytes.length; at += chunkBytes) cap.push(bytes.subarray(at, at + chunkBytes));
  return renderOutput(cap.end());
}

test('invalid UTF-8 becomes U+FFFD', () => {
  assert.equal(render(Buffer.from([0x61, 0xff, 0xe2, 0x82, 0x62]), 100, 1), 'a\ufffd\ufffdb');
});

test('head and tail are the same however the stream is cut into chunks', () => {
  const bytes = Buffer.from('0123456789€'.repeat(1000));
  const expected = render(bytes, 64, bytes.length);
  for (const chunkBytes of [1, 2, 3, 7, 31, 32, 33, 64, 1000, 4095]) assert.equal(render(bytes, 64, chunkBytes), expected);
});

test('what is kept and what is cut add up, for every cap', () => {
  const bytes = Buffer.from('a€b😀'.repeat(20));
  for (let capBytes = 0; capBytes <= bytes.length + 1; capBytes += 1) {
    const cap = openOutputCap(capBytes);
    cap.push(bytes);
    const { head, tail, totalBytes, cutBytes } = cap.end();
    assert.equal(head.length + tail.length + cutBytes, totalBytes);
    assert.ok(head.length + tail.length <= capBytes);
    assert.ok(cutBytes === 0 ? capBytes >= bytes.length : !renderOutput({ head, tail, totalBytes, cutBytes }).includes('\ufffd'));
  }
});
