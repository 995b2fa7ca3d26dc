// The final answer is found in boxes, sentences, formulas and numbers, in this order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findAnswer } from '../src/find-answer.ts';

const cases: readonly (readonly [string, string | undefined, string?])[] = [
  ['so \\boxed{1} and \\boxed{2}.', '1, 2', 'box'],
  ['first \\boxed{3}, later we see that it is \\boxed{\\frac{1}{2}}', '\\frac{1}{2}', 'box'],
  ['The answer is 4, so \\boxed{5}', '5', 'box'],
  ['\\boxed{\\{1, 2\\}}', '\\{1, 2\\}', 'box'],
  ['\\boxed{cut off', undefined],
  ['The answer is 42.', '42', 'sentence'],
  ['The final answer is $\\frac{1}{2}$. I hope it is correct.', '\\frac{1}{2}', 'sentence'],
  ['**Answer:** 3.5 m', '3.5 m', 'sentence'],
  ['48/2 = 24\n#### 72', '72', 'sentence'],
  ['One solution is $m = -2$, the next one is smaller. The answer is (B).', '(B)', 'sentence'],
  ['The answer is $x=3$ or $x=4$.', 'x=3 or x=4', 'sentence'],
  ['The answer is \\(1\\), \\(2\\) and \\(3\\).', '1, 2, 3', 'sentence'],
  ['The answer is 5 (since $x$ is odd).', '5 (since $x$ is odd)', 'sentence'],
  ['The answer is\n\n7', '7', 'sentence'],
  ['thus $x = 3$', '3', 'math'],
  ['we count 12 and 1,234.', '1,234', 'number'],
  ['no idea', undefined],
];

test('the answer is found where the agent put it', () => {
  for (const [text, answer, from] of cases) {
    const found = findAnswer(text);
    assert.equal(found?.text, answer, text);
    if (from !== undefined) assert.equal(found?.from, from, text);
  }
});

test('a megabyte of boxes, announcements, dollars or digits is searched in bounded work', () => {
  for (const piece of ['\\boxed{', 'answer is ', 'answer to ', '$', '1,', '\\boxed{1} and '])
    findAnswer(piece.repeat((1 << 20) / piece.length));
});

/** More than is searched for an answer. */
const long = 1 << 18;

test('a part of an answer that is too long to be read is no answer', () => {
  const digits = '7'.repeat(long);
  for (const text of [
    `\\boxed{${digits}, 42}`,
    `so \\boxed{${digits}}, which is \\frac{1}{2} of it, or 42`,
    `\\boxed{a \\boxed{b} ${digits} 42}`,
    `\\fbox{\\{${digits} 42\\}}`,
    `\\boxed{${'7'.repeat(20_000)}} = 42`,
    `\\boxed{42} and \\boxed{${'7'.repeat(20_000)}}`,
    `\\boxed{${'7'.repeat(20_000)}} and \\boxed{42}`,
    `The answer is 42, so \\boxed{${'7'.repeat(20_000)}}`,
    `we count ${'7'.repeat(20_000)}`,
  ])
    assert.deepEqual(findAnswer(text), { text: '', from: 'unread' }, `${text.slice(0, 20)} … ${text.slice(-20)}`);
});

test('a long text before the answer, and a box that is never closed, do not hide it', () => {
  const words = 'we think }'.repeat(long / 10);
  assert.deepEqual(findAnswer(`\\boxed{1} ${words} \\boxed{2}`), { text: '2', from: 'box' });
  assert.deepEqual(findAnswer(`put it into \\boxed{ ${'we think '.repeat(long / 9)} The answer is 42.`), { text: '42', from: 'sentence' });
  assert.deepEqual(findAnswer(`${'{'.repeat(long)} \\boxed{3}`), { text: '3', from: 'box' });
});
