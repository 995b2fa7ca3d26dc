// Rows of Codeforces problems: with `official_tests`, or as DeepMind's CodeContests with `public_tests`, `private_tests` and `generated_tests`.

import { definedOf } from '@millrace/protocol';
import type { Row } from '../../row.ts';
import { fromColumns, mebibytesOf, pairs, secondsOf } from './row.ts';

export function fromCodeforces(row: Row): Row {
  if (typeof row.interaction_format === 'string' && row.interaction_format !== '')
    throw new Error('interactive problems are not supported');
  if (row.input_mode === 'file') throw new Error('problems that read and write files are not supported: input_mode must be stdio');
  if (row.official_tests_complete === false && row.generated_checker === undefined && !pairs.safeParse(row.official_tests).data?.length)
    throw new Error('official_tests has no tests');
  const tests = [row.examples, row.official_tests].flatMap((list) => pairs.safeParse(list).data ?? []);
  const seen = new Set<string>();
  return definedOf({
    question: renderQuestion(row),
    tests: tests.filter(({ input }) => !seen.has(input) && seen.add(input)).map(({ input, output }) => ({ input, output })),
    time_limit_s: secondsOf(row.time_limit),
    memory_limit_mib: mebibytesOf(row.memory_limit),
    checker: typeof row.generated_checker === 'string' && row.generated_checker !== '' ? toChecker(row.generated_checker) : undefined,
  });
}

/** Its checkers take the input, the expected and the given output, and print 1 or 0. */
const toChecker = (source: string) => ({ language: 'python', source, arguments: ['input', 'answer', 'output'], verdict: 'stdout' });

function renderQuestion(row: Row): string {
  const sections = [row.description, titled('Input', row.input_format), titled('Output', row.output_format), titled('Note', row.note)];
  return sections.filter((one) => typeof one === 'string' && one !== '').join('\n\n');
}

const titled = (title: string, text: unknown): string => (typeof text === 'string' && text !== '' ? `${title}\n${text}` : '');

export function fromCodeContests(row: Row): Row {
  const tests = [row.public_tests, row.private_tests, row.generated_tests].flatMap(fromColumns);
  const bytes = Number(row.memory_limit_bytes);
  return definedOf({
    question: row.description,
    tests,
    time_limit_s: secondsOf(row.time_limit),
    memory_limit_mib: bytes > 0 ? mebibytesOf(bytes / 2 ** 20) : undefined,
  });
}
