// No text takes long to read or to compare: what is hostile by construction, and what a seeded generator makes from it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findAnswer, isSameAnswer } from '@millrace/answers';
import { findChoice } from '../../src/stem/choice.ts';
import { findQuantity, isSameQuantity } from '../../src/stem/quantity.ts';
import { isSameText } from '../../src/stem/short-text.ts';

const nest = (open: string, inner: string, close: string, times: number): string => open.repeat(times) + inner + close.repeat(times);
const setsOf = (depth: number, leaf: string): string =>
  depth === 0 ? leaf : `\\{${Array.from({ length: 3 }, () => setsOf(depth - 1, leaf)).join(',')}\\}`;

const hostile: readonly string[] = [
  ...['9**9**9', '10^10^10', '1e999999999', '((((9!)!)!)!)!', '1000!+999!', '\\binom{1000}{500}'.repeat(200), '(1+10^{-3})^{10^9}'],
  ...['{'.repeat(3900), '('.repeat(1999), '2^'.repeat(1900), '|'.repeat(3000), '-'.repeat(3900), '='.repeat(3900), '\\'.repeat(3900)],
  ...['x'.repeat(3900), '9'.repeat(1 << 20), '.'.repeat(1 << 20), ' '.repeat(1 << 20), '$'.repeat(1 << 20), '\\pm 1'.repeat(600)],
  ...[
    nest('\\frac{1}{1+', 'x', '}', 55),
    nest('\\sqrt[3]{', '2', '}', 55),
    nest('\\tan(', 'x', ')', 55),
    nest('\\left(', '1', '\\right)', 300),
  ],
  ...[setsOf(5, '1'), setsOf(4, '\\sqrt2'), nest('\\{\\{1,2\\},\\{2,1\\},', '1', '\\}', 9), nest('\\{1,\\{2,3\\},', '1', '\\}', 280)],
  ...['\\sum_{k=1}^{10^9} k', '\\sum_{k=1}^{5000} \\sin k', '\\sum_{k=1}^{4000}\\sum_{j=1}^{4000} kj', '\\prod_{k=1}^{5000} k!'],
  ...[
    '\\int_0^1\\int_0^1 \\sin(xy)\\,dx\\,dy',
    '\\int_0^1 x dx+'.repeat(8),
    '\\lim_{x\\to 0}'.repeat(9),
    'a+b+c+d+f+g+h+j+k+l+m+n'.repeat(100),
  ],
  ...['\\sin(x)+'.repeat(430), '\\log(x)+'.repeat(400), '1/100003+'.repeat(400), '\\text{'.repeat(600), '\\begin{pmatrix}'.repeat(200)],
  ...[
    `5 ${'kg '.repeat(1200)}`,
    `5 ${'apple '.repeat(600)}`,
    '1:'.repeat(1900),
    '1 1/2 '.repeat(600),
    '\\sqrt2+1,'.repeat(199),
    'H2'.repeat(900),
  ],
];

/** In milliseconds of CPU, so that a busy machine does not matter. */
function cpuOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const judges: Readonly<Record<string, (text: string, truth: string) => unknown>> = {
  answer: isSameAnswer,
  text: isSameText,
  quantity: (text, truth) => isSameQuantity(text, truth, { relative: 0.01, absolute: 0, isUnitRequired: false }),
};
const finders: Readonly<Record<string, (text: string) => unknown>> = {
  answer: findAnswer,
  quantity: findQuantity,
  choice: (text) => findChoice(text, ['oxygen', 'nitrogen', 'argon', 'helium']),
};

/** The first calls are compiled, and a busy machine slows others down: a slow one is tried again. */
function assertFast(limitMs: number, name: string, work: () => void): void {
  if (cpuOf(work) < limitMs) return;
  const ms = Math.min(...Array.from({ length: 6 }, () => cpuOf(work)));
  assert.ok(ms < limitMs, `${name}: ${ms.toFixed(0)} ms`);
}

test('any comparison of two texts takes less than 200 ms', () => {
  for (const [kind, judge] of Object.entries(judges))
    for (const text of hostile)
      for (const truth of ['\\sqrt{2}', '\\{1, x^2\\}', `${text}+0`])
        assertFast(200, `${kind} ${text.slice(0, 60)}`, () => judge(text, truth));
});

test('the answer in a megabyte of text is found in less than 20 ms', () => {
  const pieces = [
    '\\boxed{',
    'answer is ',
    'answer to ',
    'The answer is\n',
    '\n',
    '$',
    '1,',
    '\\boxed{1} and ',
    'option A is ',
    '**B) ',
    'x 10^-7 m ',
    'not B ',
  ];
  for (const [kind, find] of Object.entries(finders))
    for (const piece of pieces) {
      const long = piece.repeat((1 << 20) / piece.length);
      for (const text of [long, `The answer is ${long}`, `The answer is${'\n'.repeat(1 << 20)}`])
        assertFast(20, `${kind} in ${JSON.stringify(text.slice(0, 40))}`, () => find(text));
    }
});

/** A small generator with a seed, so that a failure can be repeated. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}

const atoms = [
  'x',
  '2',
  '\\pi',
  '\\{',
  '\\}',
  '(',
  ')',
  '{',
  '}',
  '^',
  '_',
  '\\frac',
  '\\sqrt',
  ',',
  '=',
  '<',
  '\\cup',
  '+',
  '-',
  '!',
  '\\sum_{k=1}^',
  '\\int_0^',
  '\\text{ cm}',
  '\\pm',
  '|',
  ' or ',
  'dx',
  '%',
  '\\begin{pmatrix}',
  '&',
  '\\\\',
  '1/2',
  '\\sin',
  '\\infty',
  ':',
  '\\mid',
  '°',
  '\\in',
  '10^9',
];

test('two thousand random answers are compared in bounded work, and each is the same as itself', () => {
  const random = makeRandom(20_261_118);
  for (let round = 0; round < 2000; round += 1) {
    const text = Array.from({ length: 1 + random(40) }, () => atoms[random(atoms.length)]).join('');
    assertFast(200, text, () => isSameAnswer(text, `${text}+0`));
    assertFast(200, text, () => isSameAnswer(text, '\\{1,2\\}'));
    assert.ok(isSameAnswer(text, text), text);
  }
});
