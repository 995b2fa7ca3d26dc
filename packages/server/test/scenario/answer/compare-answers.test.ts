// Short answers are compared by value, and no answer makes that slow.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSameAnswer } from '../../../src/scenario/answer/compare-answers.ts';

type Pairs = readonly (readonly [string, string])[];

const same: Readonly<Record<string, Pairs>> = {
  numbers: [
    ['1/2', '\\frac{1}{2}'],
    ['0.5', '\\frac12'],
    ['1,000', '1000'],
    ['1{,}000', '1000'],
    ['2^{100}', '1267650600228229401496703205376'],
    ['1\\frac{1}{2}', '1.5'],
    ['0.333333', '1/3'],
    ['6.02\\times10^{23}', '6.02*10^23'],
    ['\\$5', '5'],
    ['5!', '120'],
    ['\\binom{5}{2}', '10'],
    ['\\textbf{082}', '82'],
    ['\\textbf{(019) }', '19'],
    ['\\mathbf{1/2}', '0.5'],
  ],
  expressions: [
    ['2\\sqrt{3}', '\\sqrt{12}'],
    ['x^2+2x+1', '(x+1)^2'],
    ['\\frac{\\sqrt{2}}{2}', '\\frac{1}{\\sqrt 2}'],
    ['sqrt(2)/2', '\\frac{\\sqrt2}{2}'],
    ['\\sin 30^\\circ', '1/2'],
    ['3+4i', '4i+3'],
    ['e^{i\\pi}', '-1'],
    ['\\log_2 8', '3'],
    ['\\sqrt[3]{8}', '2'],
    ['\\frac{3}{4}\\pi', '3π/4'],
    ['|x|', '\\left|x\\right|'],
  ],
  'sets, lists and tuples': [
    ['\\{1,2\\}', '\\{2,1\\}'],
    ['2,1', '1,2'],
    ['(1,2)', '\\left( 1, 2 \\right)'],
    ['3\\pm\\sqrt2', '3+\\sqrt2, 3-\\sqrt2'],
    ['x=1 \\text{ or } x=2', '1,2'],
    ['\\emptyset', '\\{\\}'],
  ],
  'intervals and relations': [
    ['(-\\infty,3)', 'x<3'],
    ['1<x\\le 2', '(1,2]'],
    ['(-\\infty, 1) \\cup (2,\\infty)', '(2,\\infty)\\cup(-\\infty,1)'],
    ['x \\in [0,1]', '0\\le x\\le1'],
    ['x=5', '5'],
    ['y=2x+1', '2x+1'],
    ['2x+2y=6', 'x+y=3'],
  ],
  matrices: [['\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}', '\\begin{bmatrix} 1 & 2 \\\\ 3 & \\frac{8}{2} \\end{bmatrix}']],
  'units and percentages': [
    ['5\\text{ cm}', '5'],
    ['500 cm', '5 m'],
    ['14 cm^2', '14\\text{ cm}^2'],
    ['30^\\circ', '30'],
    ['50\\%', '0.5'],
    ['50\\%', '50'],
    ['10 dollars', '10'],
  ],
  text: [
    ['\\text{Monday}', 'monday'],
    ['(C)', 'C'],
    ['\\text{(C)}', 'C'],
  ],
};

const different: Pairs = [
  ['1/2', '1/3'],
  ['(1,2)', '(2,1)'],
  ['(1,2)', '[1,2]'],
  ['x>3', 'x<3'],
  ['10^{20}+1', '10^{20}'],
  ['5 cm', '5 m'],
  ['2', '\\{2,3\\}'],
  ['\\sqrt{2}', '1.4'],
  ['\\sqrt{x^2}', 'x'],
  ['x', 'y'],
  ['9**9**9', '10^10^10'],
  ['10^{10^{10}}', '10^{10^{11}}'],
  ['', '5'],
  ['\\infty', '-\\infty'],
  ['1,2', '1,2,3'],
  ['1', '1000'],
  ['0', '6.6\\times10^{-34}'],
  ['\\begin{pmatrix}1\\\\2\\end{pmatrix}', '\\begin{pmatrix}2\\\\1\\end{pmatrix}'],
];

for (const [name, pairs] of Object.entries(same))
  test(`${name} are the same in whatever form they are written`, () => {
    for (const [given, truth] of pairs) {
      assert.ok(isSameAnswer(given, truth), `${given} is ${truth}`);
      assert.ok(isSameAnswer(truth, given), `${truth} is ${given}`);
    }
  });

test('different answers are not the same', () => {
  for (const [given, truth] of different) {
    assert.equal(isSameAnswer(given, truth), false, `${given} is not ${truth}`);
    assert.equal(isSameAnswer(truth, given), false, `${truth} is not ${given}`);
  }
});

test('a hostile answer is read in bounded work: towers of powers, deep nesting, long lists, many signs, factorials, spaces', () => {
  const hostile = [
    ...['9**9**9', '10^10^10', '1e999999999', '((((9!)!)!)!)!', '{'.repeat(3900), '('.repeat(1999) + 1, '2^'.repeat(1900) + 2],
    ...[
      `${'\\frac{'.repeat(600)}1`,
      `${'\\sqrt{'.repeat(500)}2${'}'.repeat(500)}`,
      '\\pm 1'.repeat(600),
      '170!'.repeat(900),
      '1,'.repeat(1999),
    ],
    ...[
      '\\binom{1000}{500}'.repeat(200),
      `${' '.repeat(3990)}a`,
      '\\text{'.repeat(600),
      '\\{1,2,3,4,5,'.repeat(300),
      '|'.repeat(3000),
      '-'.repeat(3900),
    ],
    ...['x'.repeat(3900), 'x^'.repeat(1900), '9'.repeat(3900), '\\begin{pmatrix}'.repeat(200), '='.repeat(3900), '.'.repeat(1 << 20)],
  ];
  for (const one of hostile)
    for (const truth of ['1, 2, 3', '\\{1, x^2\\}', `${one}+0`]) assert.equal(isSameAnswer(one, truth) && truth === '1, 2, 3', false);
});
