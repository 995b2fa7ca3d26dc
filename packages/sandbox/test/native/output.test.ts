// How the executor finds the end of a command's output, caps it, and renders it as text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runProbe } from './probe.ts';

const large = 1 << 20;
const renderBytes = (bytes: Buffer, capBytes = large, chunkBytes = large) =>
  runProbe(['render', capBytes, chunkBytes], bytes).stdout.toString();

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
for (const [claim, bytes, text] of cases) test(claim, () => assert.equal(renderBytes(Buffer.from(bytes)), text));

test('each longest part of an incomplete character becomes one U+FFFD, as in Node.js', () => {
  const bytes = Buffer.from([0x61, 0xff, 0xe2, 0x82, 0x62, 0xed, 0xa0, 0x80, 0xf0, 0x9f, 0x98, 0xc0, 0xf4, 0x90, 0xe0, 0x80]);
  assert.equal(renderBytes(bytes, 100, 1), bytes.toString('utf8'));
});

test('head and tail do not depend on how the stream is cut into chunks', () => {
  const bytes = Buffer.from('0123456789€'.repeat(1000));
  const expected = renderBytes(bytes, 64);
  for (const chunkBytes of [1, 2, 3, 7, 31, 32, 33, 64, 1000, 4095]) assert.equal(renderBytes(bytes, 64, chunkBytes), expected);
});

test('kept and cut bytes add up for every cap, and no cut is inside a character', () => {
  const bytes = Buffer.from('a€b😀'.repeat(4));
  for (let capBytes = 0; capBytes <= bytes.length + 1; capBytes += 1) {
    const { stdout, stderr } = runProbe(['render', capBytes, large], bytes);
    const [head = 0, tail = 0, total = 0, cut = 0] = JSON.parse(stderr) as number[];
    assert.equal(head + tail + cut, total);
    assert.ok(head + tail <= capBytes);
    assert.ok(cut === 0 ? capBytes >= bytes.length : !stdout.toString().includes('\ufffd'));
  }
});

test('the lines that we type are removed where the terminal echoed them, and similar text is kept', () => {
  const end = `{ \\builtin printf '\\e]8517;abcdefghijkl;%s\\a' "$?"; } >/dev/tty 2>/dev/null\n`;
  const run = ' \\builtin \\. /run/millrace/own/command </dev/null >/dev/tty 2>&1; ';
  assert.equal(renderBytes(Buffer.from(`a\n${run}${end}b\n ${end}c`)), 'a\nb\nc');
  for (const kept of [end, ` ${end.replace('abc', 'ABC')}`, ` ${end.replace('jkl', 'jk')}`, run])
    assert.equal(renderBytes(Buffer.from(kept)), kept);
});

const marker = '\x1b]8517;abcdefghijkl;130\x07';
const scan = (text: string, chunkBytes: number): unknown =>
  JSON.parse(runProbe(['scan', 'abcdefghijkl', chunkBytes], text).stdout.toString());

test('the marker is found wherever the stream is cut into chunks', () => {
  for (let chunkBytes = 1; chunkBytes < 40; chunkBytes += 1)
    assert.deepEqual(scan(`out\x1b[0mput${marker}late`, chunkBytes), ['out\x1b[0mput', 130, 'late']);
});

test('a marker with another nonce, or without a number, is passed on as output', () => {
  for (const text of [marker.replace('abc', 'xyz'), marker.replace('130', ''), marker.replace('130', '1x0')])
    assert.deepEqual(scan(`${text}.`, 5), [`${text}.`, null, '']);
});

test('a marker that never ends is passed on as output, not held back forever', () => {
  const [output] = scan(`${marker.slice(0, -1)}${'9'.repeat(100)}`, 7) as [string];
  assert.ok(output.length > 80);
});
