// Finding and comparing short answers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSameAnswer, parseAnswer } from '../../src/scenario/math-answer.ts';

const parsed: [string, string | undefined][] = [
  ['so it is \\boxed{42}.', '42'],
  ['\\boxed{1} and then \\boxed{\\frac{1}{2}}', '\\frac{1}{2}'],
  ['\\boxed{never closed', undefined],
  ['The answer is 7 apples', '7 apples'],
  ['#### 1,234', '1,234'],
  ['first 3, then 4', '4'],
  ['no idea', undefined],
  ['', undefined],
];

for (const [text, answer] of parsed) {
  test(`the answer in ${JSON.stringify(text)} is ${JSON.stringify(answer)}`, () => assert.equal(parseAnswer(text), answer));
}

const compared: [string, string, boolean][] = [
  ['42', '42.0', true],
  ['1,000', '1000', true],
  ['\\frac{1}{2}', '0.5', true],
  ['1/3', '0.3333333333333333', true],
  ['50%', '0.5', true],
  ['$x+1$', 'x + 1', true],
  ['\\text{Paris}', 'paris', true],
  ['41', '42', false],
  ['-3', '3', false],
  ['1/0', '5', false],
  ['', '0', false],
];

for (const [given, truth, same] of compared) {
  test(`${given || 'nothing'} is ${same ? '' : 'not '}the same as ${truth}`, () => assert.equal(isSameAnswer(given, truth), same));
}
