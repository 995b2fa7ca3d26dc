// Where our comparison of short answers and math-verify differ on purpose, and why.

import type { MathCase } from './math-cases.ts';

interface MathDifference {
  readonly why: string;
  /** Our verdict. */
  readonly ours: boolean;
  applies(one: MathCase): boolean;
}

const either = (pattern: RegExp) => (one: MathCase) => pattern.test(one.given) || pattern.test(one.truth);

export const mathDifferences: readonly MathDifference[] = [
  { why: 'A full stop after a number in a box is not part of it.', ours: true, applies: ({ given }) => given.includes('{42.}') },
  { why: 'The imaginary unit is computed with: 1/i is -i.', ours: true, applies: either(/-i|1i|\{i\}/) },
  { why: 'An inequality in one variable is the interval of its solutions.', ours: true, applies: ({ given }) => given.includes('\\le x') },
  { why: 'The degree sign is read as \\circ is.', ours: true, applies: ({ given }) => given.includes('°') },
  { why: 'Decimals and powers of ten are exact numbers of any size.', ours: true, applies: either(/602000000/) },
  { why: 'Infinity is not computed with: it is only itself.', ours: false, applies: ({ given }) => given.includes('\\infty+1') },
];
