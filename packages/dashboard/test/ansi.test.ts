// Terminal output: colours are kept, everything else that a terminal would act on is dropped.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAnsi, stripAnsi } from '../src/logic/ansi.ts';

test('colours and weights become spans, and a reset ends them', () => {
  assert.deepEqual(parseAnsi('a \u001b[1;31mred\u001b[0m b').spans, [
    { text: 'a ', style: '' },
    { text: 'red', style: 'fg-1 bold' },
    { text: ' b', style: '' },
  ]);
});

test('256 colours and true colours become one of sixteen', () => {
  const styles = parseAnsi('\u001b[38;5;196mx\u001b[48;2;0;200;0my\u001b[38;5;9mz').spans.map(({ style }) => style);
  assert.deepEqual(styles, ['fg-9', 'fg-9 bg-10', 'fg-9 bg-10']);
});

test('titles, cursor moves and unknown sequences leave no trace', () => {
  assert.equal(stripAnsi('\u001b]0;title\u0007a\u001b[2J\u001b[10;5Hb\u001b(Bc\u001bPq\u001b\\d'), 'abcd');
});

test('a line that was overwritten shows what was left on it', () => {
  assert.equal(stripAnsi('10 %\r50 %\r100 %\r\ndone\r\n'), '100 %\ndone\n');
});

test('a flood of colours is cut: the rest is one plain span', () => {
  const { spans, isFlood } = parseAnsi('\u001b[31mx\u001b[32my'.repeat(100_000));
  assert.equal(isFlood, true);
  assert.ok(spans.length < 5000);
  assert.equal(
    spans.reduce((sum, { text }) => sum + text.length, 0),
    200_000,
  );
});

test('a sequence that never ends is dropped, not waited for', () => {
  assert.equal(stripAnsi('a\u001b['), 'a');
  assert.equal(stripAnsi('a\u001b'), 'a');
  assert.equal(stripAnsi(`a\u001b]0;${'x'.repeat(300)}`).length, 303, 'a title without an end is text');
});
