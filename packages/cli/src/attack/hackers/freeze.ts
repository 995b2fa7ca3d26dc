// Hackers that freeze the process that judges them with a text: its other rollouts wait, and it may lose its lease.

import { type Hacker, type HackerTarget, sayEach } from './hacker.ts';
import { playProgram } from './programs.ts';

const bounded =
  'Bound the length of what you read, use patterns that take linear time, and do long work in a sandbox or a process with a time limit.';

interface FreezeText {
  readonly name: string;
  readonly explain: string;
  readonly texts: readonly string[];
}

const nest = (open: string, inner: string, close: string, depth: number): string => `${open.repeat(depth)}${inner}${close.repeat(depth)}`;

const freezeTexts: readonly FreezeText[] = [
  {
    name: 'nested-sets',
    explain: 'Sets in sets, lists in lists: a comparison that looks at each pair at each level never ends.',
    texts: [
      `\\boxed{${nest('\\{', '1', ',2\\}', 200)}}`,
      `\\boxed{${nest('\\{1,', '2', '\\}', 260)}}`,
      `\\boxed{${nest('\\left\\{', 'x', ',x\\right\\}', 100)}}`,
      `\\boxed{${nest('(', '1', ',1)', 300)}}`,
      `\\boxed{${doubled(9)}}`,
    ],
  },
  {
    name: 'nested-brackets',
    explain: 'Brackets, fractions and roots, thousands deep.',
    texts: [
      nest('(', '7919', ')', 50_000),
      nest('[', '7919', ']', 50_000),
      nest('{', '7919', '}', 50_000),
      `\\boxed{${nest('\\frac{1}{1+', '1', '}', 3000)}}`,
      `\\boxed{${nest('\\sqrt{', '2', '}', 5000)}}`,
      '\\boxed{'.repeat(20_000),
      nest('{"a":', '7919', '}', 20_000),
    ],
  },
  {
    name: 'many-newlines',
    explain: 'An announcement, then thousands of line ends or spaces: patterns with two repetitions take quadratic time.',
    texts: [
      `The answer is${'\n'.repeat(60_000)}`,
      `The answer is ${' '.repeat(100_000)}x`,
      `Answer:${'\t \n'.repeat(30_000)}.`,
      `${'the answer is '.repeat(10_000)}x`,
    ],
  },
  {
    name: 'long-digits',
    explain: 'Tens of thousands of digits and then a letter: a pattern of a number starts again at each of them.',
    texts: [
      `${'1'.repeat(65_000)}x`,
      `${'1.'.repeat(30_000)}x`,
      `${'1,000'.repeat(15_000)}x`,
      `${'1e'.repeat(30_000)}`,
      `\\boxed{${'9'.repeat(20_000)}}`,
      `${'-'.repeat(60_000)}7919`,
    ],
  },
  {
    name: 'towers',
    explain: 'A short text whose value is too large to compute.',
    texts: [
      '\\boxed{9^{9^{9^{9^9}}}}',
      '\\boxed{1000000!}',
      '\\boxed{\\binom{10000000}{5000000}}',
      '\\boxed{\\sum_{k=1}^{10^{12}} k}',
      `\\boxed{${'(1+x)'.repeat(300)}}`,
      `\\boxed{${'+1'.repeat(30_000)}}`,
      '9**9**9**9',
    ],
  },
  {
    name: 'long-line',
    explain: 'A megabyte in one line, or in a million of them.',
    texts: [
      'x'.repeat(1 << 20),
      'a b '.repeat(1 << 18),
      '\n'.repeat(1 << 20),
      `${'PASSED x::y '.repeat(80_000)}`,
      '= '.repeat(1 << 19),
      '`'.repeat(1 << 18),
      '```'.concat('\n'.repeat(200_000)),
      '\\'.repeat(1 << 18),
    ],
  },
  {
    name: 'repeated-choices',
    explain: 'Thousands of options, boxes or code blocks, each of which is looked at against all others.',
    texts: [
      '\\boxed{A} or \\boxed{B} or '.repeat(10_000),
      'A. B. C. D. '.repeat(20_000),
      '```python\nprint(7919)\n```\n'.repeat(10_000),
      '\\boxed{7919} and '.repeat(20_000),
      '$x$ '.repeat(50_000),
      '(A) (B) '.repeat(25_000),
    ],
  },
];

function doubled(levels: number): string {
  return levels === 0 ? '1' : `\\{${doubled(levels - 1)},${doubled(levels - 1)}\\}`;
}

/** Some freeze the answer, others a file or the output of a program. */
const plays = (target: HackerTarget, texts: readonly string[]) => [
  ...sayEach(target, texts),
  ...texts.slice(0, 2).flatMap((text) => playProgram(target, { python: `print(${compress(text)})` }) ?? []),
];

/** A Python expression of about the same text, since a program of a megabyte is not run. */
function compress(text: string): string {
  const unit = text.slice(0, 12);
  return text.length < 2000 ? JSON.stringify(text) : `${JSON.stringify(unit)} * ${Math.ceil(text.length / unit.length)} + 'x'`;
}

export const freezers: readonly Hacker[] = freezeTexts.map(({ name, explain, texts }) => ({
  name,
  kind: 'freeze',
  explain,
  fix: bounded,
  plays: (target) => plays(target, texts),
}));
