// Outputs of programs against expected ones: space, lines, numbers in several forms, lists, words.

const expected: readonly string[] = [
  '5',
  '5\n',
  '1 2 3',
  '1 2 3\n4 5 6\n',
  'YES',
  'YES\nNO\nYES',
  '0.5',
  '3.14159',
  '1e9',
  '100000000000000000000',
  '-7',
  '',
  'hello world',
  '0',
  '1.0 2.0',
  'a b\nc d',
  '1000000',
  '2.5\n3.5\n',
  'Case #1: 3',
  '1\n\n2',
];

/** Ways to write something like it, of which some are the same and some are not. */
const changes: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `${text}\n`,
  (text) => `${text}\n\n`,
  (text) => `  ${text}`,
  (text) => `${text}   `,
  (text) => text.replaceAll(' ', '  '),
  (text) => text.replaceAll('\n', '\r\n'),
  (text) => text.replaceAll('\n', ' '),
  (text) => text.replaceAll(' ', '\n'),
  (text) => text.toLowerCase(),
  (text) => text.replace(/\d+$/, (digits) => `${digits}.0`),
  (text) => text.replace(/\d/, '9'),
  (text) => `${text} 1`,
  (text) => text.slice(0, -1),
  (text) => text.replace(/(\d)\.(\d+)/g, '$1.$20000001'),
  (text) => text.replace(/(\d)\.(\d+)/g, '$1.$20'),
  (text) => `+${text}`,
  (text) => `[${text}]`,
  (text) => text.split('\n').reverse().join('\n'),
  (text) => text.split(' ').reverse().join(' '),
  () => '',
];

export function makeOutputCases(): readonly (readonly [string, string])[] {
  const cases = expected.flatMap((text) => changes.map((change) => [change(text), text] as const));
  const seen = new Set<string>();
  return cases.filter((one) => !seen.has(JSON.stringify(one)) && seen.add(JSON.stringify(one)));
}

const values: readonly string[] = [
  '1',
  '1.0',
  '2',
  'true',
  '"1"',
  '[1, 2]',
  '[2, 1]',
  '[1.0, 2.0]',
  '[]',
  '{}',
  '{"a": 1}',
  '{"a": 1.0}',
  '0.1',
  '0.30000000000000004',
  '0.3',
  'null',
  '""',
  '[[1], [2]]',
  '9007199254740993',
  '9007199254740992',
  '"a b"',
  '"a  b"',
];

/** Each result against each expected one. */
export function makeCallCases(): readonly (readonly [string, string])[] {
  return values.flatMap((given) => values.map((expected) => [given, expected] as const));
}
