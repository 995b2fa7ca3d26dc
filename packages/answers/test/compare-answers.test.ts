// Short answers are compared by value, and no answer makes that slow.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSameAnswer } from '../src/compare-answers.ts';

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
  assignments: [
    ['(x,y)=(1,2)', '(1,2)'],
    ['(x,y)=(1,2)', 'y=2, x=1'],
    ['$x=3$ or $x=4$', '3,4'],
    ['x_1=3, x_2=4', 'x=3 or x=4'],
    ['A=\\{1,2\\}', '\\{2,1\\}'],
  ],
  notations: [
    ['10,\\!000', '10000'],
    ['1 and 2', '1,2'],
    ['36\\pi\\text{ cm}^2', '36\\pi'],
    ['\\approx 3.14', '3.14'],
    ['{5 \\choose 2}', '10'],
    ['3/4 of a pie', '3/4'],
    ['1e3', '1000'],
    ['0.\\overline{3}', '1/3'],
    ['1 1/2', '3/2'],
    ['\\sqrt[3]{x}', 'x^{1/3}'],
    ['\\{x\\mid x>2\\}', '(2,\\infty)'],
    ['\\mathbb{R}\\setminus\\{0\\}', 'x \\ne 0'],
    ['\\{101,103,107\\}', '\\{107,103,101\\}'],
    ['\\prod_{k=2}^{10}\\left(1-\\frac{1}{k^2}\\right)', '\\frac{11}{20}'],
    ['\\int_0^1 \\frac{dx}{1+x^2}', '\\pi/4'],
    ['\\lim_{n\\to\\infty}\\left(1+\\frac1n\\right)^n', 'e'],
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
  ['x=1,y=2', 'x=2,y=1'],
  ['x=5', 'y=5'],
  ['a=1, b=2, c=3', 'a=1, b=3, c=2'],
  ['(x,y)=(1,2)', '(x,y)=(2,1)'],
  ['A=\\{1,2\\}', 'B=\\{1,2\\}'],
  ['123456789000+\\pi-\\pi', '123456789012'],
  ['0', '\\pi\\times10^{-15}'],
  ['0', '\\pi\\times10^{-300}'],
  ['0', 'e^{-400}'],
  ['0', '\\sin(10^{-30})'],
  ['0', 'x\\times10^{-20}'],
  ['\\sqrt{2}', '\\sqrt{2}+10^{-40}'],
  ['10^{15}+x', '10^{15}+y'],
  ['1', '1+10^{-12}\\pi'],
  ['CO', 'Co'],
  ['2\\pi R', '2\\pi r'],
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

test('an answer that names two is neither', () => {
  for (const [given, truth] of [
    ['5 \\approx 7', '5'],
    ['5 \\approx 7', '7'],
    ['5=6', '5'],
    ['5=6', '6'],
    ['x=5=6', '5'],
    ['1 or 2', '1'],
    ['5, x', '5'],
    ['(A) (B)', 'A'],
    ['(A) B', 'B'],
    ['x+y=12=13', '13'],
  ] as const)
    assert.equal(isSameAnswer(given, truth), false, `${given} is not ${truth}`);
});
