// How the bytes of a terminal are rendered as text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openOutputCap } from '../../src/output/output.ts';
import { renderOutput, renderTerminal } from '../../src/output/render.ts';

const cases: [claim: string, bytes: string, text: string][] = [
  ['plain text is unchanged', 'a\tb\n', 'a\tb\n'],
  ['colours are removed', '\x1b[1;31mred\x1b[0m', 'red'],
  ['titles and links are removed', '\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b', 'ab'],
  ['character sets and keypad modes are removed', '\x1b(B\x1b=x\x1b>', 'x'],
  ['of a title without an end, only the introducer is removed', '\x1b]0;kept\nkept', '0;kept\nkept'],
  ['a sequence without an end is removed', 'a\x1b[', 'a'],
  ['carriage return and newline become one newline', 'a\r\nb\r\n', 'a\nb\n'],
  ['text after a carriage return overwrites the line', 'abc\rX', 'Xbc'],
  ['a progress bar leaves its last state', '10%\r20%\r100%\n', '100%\n'],
  ['erasing to the end of the line', 'Downloading\r\x1b[Kdone', 'done'],
  ['erasing the whole line', 'abc\x1b[2K\rx', 'x'],
  ['erasing to the beginning of the line', 'abcd\r\x1b[1Kx', 'xbcd'],
  ['a backspace moves back by one', 'abd\bc', 'abc'],
  ['a bold word in a manual page is readable', 'b\bbo\bol\bld\bd', 'bold'],
  ['other control characters are removed', 'a\x00b\x01c\x07d\x7fe\u0085f', 'abcdef'],
  ['flow control characters do not erase anything', 'abc\r\x11\x13', 'abc'],
  ['a wide character takes one column', '€uro\r$', '$uro'],
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

test('head and tail do not depend on how the stream is cut into chunks', () => {
  const bytes = Buffer.from('0123456789€'.repeat(1000));
  const expected = render(bytes, 64, bytes.length);
  for (const chunkBytes of [1, 2, 3, 7, 31, 32, 33, 64, 1000, 4095]) assert.equal(render(bytes, 64, chunkBytes), expected);
});

test('kept and cut bytes add up for every cap', () => {
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
