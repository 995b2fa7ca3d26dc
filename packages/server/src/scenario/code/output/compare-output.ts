// Whether the output of a program is the expected one: line by line or word by word, numbers by value.

export interface OutputRule {
  /** `lines`: the same lines, each with the same words. `words`: the same words, wherever lines end. */
  readonly by: 'lines' | 'words';
  /** For words that are written as decimals: absolute below 1, relative above. 0: equal by value, so that 1.0 is 1 and 0.50 is 0.5. */
  readonly tolerance: number;
}

/** Space at the start and the end of the output and of each line does not count, nor how much of it is between words. */
export function isSameOutput(given: string, expected: string, rule: OutputRule): boolean {
  if (given === expected) return true;
  if (rule.by === 'words') return isSameLine(given, expected, rule.tolerance);
  const [a, b] = [toLines(given), toLines(expected)];
  return a.length === b.length && a.every((line, at) => isSameLine(line, b[at] ?? '', rule.tolerance));
}

const toLines = (text: string): string[] => text.trim().split(/\r\n|\r|\n/);

const toWords = (text: string): string[] => text.split(/\s+/).filter(Boolean);

function isSameLine(given: string, expected: string, tolerance: number): boolean {
  if (given === expected) return true;
  const [a, b] = [toWords(given), toWords(expected)];
  return a.length === b.length && a.every((word, at) => isSameWord(word, b[at] ?? '', tolerance));
}

const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?$/;
const isWhole = /^[+-]?\d+$/;

/** Whole numbers are never rounded. */
function isSameWord(given: string, expected: string, tolerance: number): boolean {
  if (given === expected) return true;
  if (!number.test(given) || !number.test(expected)) return false;
  if (normalise(given) === normalise(expected)) return true;
  if (tolerance === 0 || (isWhole.test(given) && isWhole.test(expected))) return false;
  const [x, y] = [Number(given), Number(expected)];
  return Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(y));
}

/** The digits and the exponent, without zeros that change nothing: exact for any number of digits. */
function normalise(text: string): string {
  const [, sign = '', whole = '', part = '', exponent = '0'] = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = whole + part;
  const first = digits.search(/[1-9]/);
  if (first < 0) return '0';
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return `${sign === '-' ? '-' : ''}${digits.slice(first, end)}e${Number(exponent) - part.length + digits.length - end}`;
}
