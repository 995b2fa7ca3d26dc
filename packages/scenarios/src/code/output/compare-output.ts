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
  return isSameList(linesOf(given.trim()), linesOf(expected.trim()), (a, b) => isSameLine(a, b, rule.tolerance));
}

function isSameLine(given: string, expected: string, tolerance: number): boolean {
  return given === expected || isSameList(wordsOf(given), wordsOf(expected), (a, b) => isSameWord(a, b, tolerance));
}

/** Reads both at the same time: an output of many short words would not fit into memory as lists. */
function isSameList(given: Iterator<string>, expected: Iterator<string>, isSame: (a: string, b: string) => boolean): boolean {
  for (;;) {
    const [a, b] = [given.next(), expected.next()];
    if (a.done || b.done) return a.done === b.done;
    if (!isSame(a.value, b.value)) return false;
  }
}

function* linesOf(text: string): Generator<string, undefined> {
  let start = 0;
  for (const { index, 0: end } of text.matchAll(/\r\n|\r|\n/g)) {
    yield text.slice(start, index);
    start = index + end.length;
  }
  yield text.slice(start);
}

function* wordsOf(text: string): Generator<string, undefined> {
  for (const [word] of text.matchAll(/\S+/g)) yield word;
}

const number = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?$/;
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
  const [, sign = '', whole = '', part = '', exponent = '0'] = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = whole + part;
  const first = digits.search(/[1-9]/);
  if (first < 0) return '0';
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return `${sign === '-' ? '-' : ''}${digits.slice(first, end)}e${Number(exponent) - part.length + digits.length - end}`;
}
