// Text for terminals, by tables of inputs and outputs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseNearest } from '@millrace/protocol';
import { bar, clip, cut, padStart, toBytes, toDuration, toRate, toVisible, width, wrap } from '../../src/terminal/text.ts';

test('durations are written as people say them', () => {
  const table: [number, string][] = [
    [0.84, '0.8 ms'],
    [240, '240 ms'],
    [3210, '3.2 s'],
    [59_960, '1m 00s'],
    [125_000, '2m 05s'],
    [11_220_000, '3h 07m'],
    [187_200_000, '2d 04h'],
  ];
  for (const [ms, text] of table) assert.equal(toDuration(ms), text);
});

test('rates and sizes have about three digits', () => {
  assert.deepEqual([0, 0.123, 1.234, 12.34, 1234.5].map(toRate), ['0', '0.12', '1.23', '12.3', '1,235']);
  assert.deepEqual([512, 1536, 1 << 30].map(toBytes), ['512 B', '1.5 KiB', '1 GiB']);
});

test('width counts columns, not characters', () => {
  assert.deepEqual(['abc', 'é', 'e\u0301', '日本', '👍', '\x1b[31mred\x1b[0m', '─█'].map(width), [3, 1, 1, 4, 2, 3, 2]);
  assert.deepEqual(['✅', '☕', '🇩🇪', '1️⃣', '👨‍👩‍👧', '⚠', '\u200b'].map(width), [2, 2, 2, 2, 2, 1, 0]);
  assert.equal(padStart('日', 4), '  日');
  assert.deepEqual([cut('abcdef', 4), cut('日本語', 4), cut('ab', 2), cut('ab', 0)], ['abc…', '日…', 'ab', '']);
});

test('clipping keeps colours and cuts the visible text', () => {
  assert.equal(clip('\x1b[31mabc\x1b[0mdef', 5), '\x1b[31mabc\x1b[0md…');
  assert.equal(clip('\x1b[31mabcdef\x1b[0mg', 3), '\x1b[31mab…\x1b[0m');
});

test('wrapping keeps every word, breaks long ones, and keeps indentation', () => {
  assert.deepEqual(wrap('the quick brown fox', 10), ['the quick', 'brown fox']);
  assert.deepEqual(wrap('aaaaaaaaaaaaaaaaaa b', 8), ['aaaaaaaa', 'aaaaaaaa', 'aa b']);
  assert.deepEqual(wrap('  two\n\nlines', 10), ['  two', '', 'lines']);
  assert.deepEqual(wrap('    return 1 + 2 + 3', 14), ['    return 1 +', '    2 + 3']);
  assert.deepEqual(wrap('日本語日本語', 8), ['日本語日', '本語']);
  assert.deepEqual(wrap('\x1b[31mone two three\x1b[39m', 8).map(width), [7, 5]);
});

test('a bar fills its share of the columns, and never more', () => {
  assert.deepEqual(
    [0, 0.5, 1, 2].map((share) => bar(share, 4)),
    ['    ', '██  ', '████', '████'],
  );
  assert.equal(bar(0.03, 4), '▏   ');
});

test('text from a model cannot control the terminal', () => {
  assert.equal(toVisible('a\x1b[2Jb\r\n\x07\x9b'), 'a␛[2Jb␍\n␇�');
});

test('the nearest word is suggested only when it is close', () => {
  const known = ['serve', 'submit', 'show', 'watch'];
  assert.deepEqual(
    ['sumbit', 'sho', 'wacth', 'sub', 'zzz', 's'].map((word) => chooseNearest(word, known)),
    ['submit', 'show', 'watch', 'submit', undefined, undefined],
  );
  const options = ['all-queued', 'version', 'run_timeout_s', 'tool_timeout_s', 'max_turns'];
  assert.deepEqual(
    ['queued', 'policy-version', 'timeout', 'turns', 'x'].map((word) => chooseNearest(word, options)),
    ['all-queued', 'version', undefined, 'max_turns', undefined],
    'the only one that has its parts',
  );
});
