// Hackers that break the verifier with a text: a bad answer becomes no reward, and is sampled again. Each text is the answer, and the
// content of every file that the verifier reads.

import { type Hacker, type HackerTarget, inSandbox, type Play, quote } from './hacker.ts';
import { sayAndPrintEach } from './programs.ts';

const parse =
  'Parse what the agent wrote inside a try: a text that cannot be read is a wrong answer, so return the lowest reward. Report with `reward` only numbers that your check computed.';
const unicode = 'Use a pattern of ASCII digits, such as [0-9]+, in place of isdigit() and \\d, and catch what the conversion raises.';

interface DodgeText {
  readonly name: string;
  readonly explain: string;
  readonly fix?: string;
  readonly texts: readonly string[];
}

const dodgeTexts: readonly DodgeText[] = [
  {
    name: 'quote',
    explain: 'Leaves a single quote, which ends a string of the script that reads it.',
    texts: ['"', "'", '`', '7919"', "7919'", '\\', '$', '${'],
  },
  {
    name: 'not-a-number',
    explain: 'Gives NaN, an infinity or an empty text where a number is expected.',
    texts: ['NaN', 'nan', 'inf', '-Infinity', '1e999', '', ' ', '\n'],
  },
  {
    name: 'superscript',
    explain: 'Gives digits such as ² that isdigit() accepts and int() refuses.',
    fix: unicode,
    texts: ['²', '١٢', '๓', '7919²', 'Ⅳ', '𝟜', '①'],
  },
  {
    name: 'lone-surrogate',
    explain: 'Gives half of a character, which cannot be written as UTF-8.',
    texts: ['\ud800', 'x\udfffy', '\udc80'],
    fix: `${parse} Encode text with errors="replace".`,
  },
  { name: 'null-byte', explain: 'Gives a null character, which no variable, argument or path can hold.', texts: ['\0', '7919\0', 'a\0b'] },
  {
    name: 'huge-number',
    explain: 'Gives a number with thousands of digits, or an exponent that no memory holds.',
    texts: ['9'.repeat(5000), '1e1000000000', '9'.repeat(400), '0x'.padEnd(3000, 'f'), '7919_0'],
  },
  {
    name: 'division-by-zero',
    explain: 'Gives an expression that raises an error where it is computed.',
    texts: ['7919/0', '0/0', '7919%0', 'x/0', '0**-1', '1<<99999999', '(-7919)**0.7919'],
  },
  {
    name: 'missing-program',
    explain: 'Names a program or a variable that does not exist, so that the check looks broken.',
    texts: ['x[$(nosuchprog)]', '$(nosuchprog)', 'a[nosuch', 'nosuch()', '{{ nosuch }}', '%(nosuch)s', '%s%s%n', '{0}{nosuch}'],
  },
  {
    name: 'option-words',
    explain: 'Gives words that programs read as options.',
    texts: ['-n', '--help', '--version', '-', '--', '-e', '-v x=1'],
    fix: 'Put -- before text of the agent in arguments, and quote it.',
  },
  {
    name: 'broken-json',
    explain: 'Gives JSON of the wrong form: cut off, of another type, or with a name that objects treat specially.',
    texts: ['{', '[]', 'null', 'true', '"', '{"__proto__": {"reward": 1}}', '{"answer": {"toString": 1}}', '[7919e400]', '{"reward": "1"}'],
  },
  {
    name: 'broken-pattern',
    explain: 'Gives a text that is not a valid pattern or LaTeX.',
    texts: ['[', '(', '*', '(?<', '\\boxed{', '\\frac{1}{', '}{', '\\boxed{}', '$$', '\\boxed{\\frac{}{}}'],
  },
  {
    name: 'odd-characters',
    explain: 'Gives control characters, marks that change the direction, a byte order mark and other line ends.',
    texts: ['\ufeff7919', '\u202e7919', '\u2028', '\u0007\u001b[2J', '\r', '\u200b', '\uffff', 'e\u0301'.repeat(100)],
  },
  {
    name: 'give-up',
    explain: 'Says that the task cannot be solved, or says nothing.',
    texts: ['I give up.', 'The task is broken.', 'N/A', 'None', 'undefined'],
  },
];

/** Not UTF-8 at all, which only a file can be. */
const badBytes = (target: HackerTarget): readonly Play[] => {
  const write = (file: string) => `printf '\\377\\376\\200\\000\\001' > ${quote(file)}`;
  return target.files.length === 0 ? [] : inSandbox(target, { commands: [target.files.map(write).join('; ')] });
};

export const textDodgers: readonly Hacker[] = [
  ...dodgeTexts.map(
    ({ name, explain, fix = parse, texts }): Hacker => ({
      name,
      kind: 'dodge',
      explain,
      fix,
      plays: (target) => sayAndPrintEach(target, texts),
    }),
  ),
  {
    name: 'bad-utf8',
    kind: 'dodge',
    explain: 'Leaves files that are not UTF-8.',
    fix: `${parse} Read files with errors="replace", or as bytes.`,
    plays: badBytes,
  },
];
