// JSON whose large whole numbers keep all their digits, and the comparison of two such values as Python's `==` sees them.

type Exact = null | boolean | string | number | bigint | Exact[] | { [key: string]: Exact };

const isWhole = /^-?\d+$/;
/** A shorter number is exact, and reading values one by one takes ten times as long. */
const isLarge = /\d{16}/;

/** Throws a SyntaxError. */
export function parseExact(text: string): Exact {
  const revive = (_: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && isWhole.test(context?.source ?? '') ? BigInt(context?.source ?? 0) : value;
  return (isLarge.test(text) ? JSON.parse(text, revive) : JSON.parse(text)) as Exact;
}

export function renderExact(value: unknown): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(renderExact).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([key, one]) => `${JSON.stringify(key)}:${renderExact(one)}`)
      .join(',')}}`;
  return JSON.stringify(value) ?? 'null';
}

/** Equal values are written with about as many marks. More would be read into more memory than a thread has. */
const spareMarks = 10_000;

/** Whole numbers are compared exactly, others within the tolerance. True is 1 in Python, and here it is not. */
export function isSameJson(given: string, expected: string, tolerance: number): boolean {
  if (countMarks(given) > 2 * countMarks(expected) + spareMarks) return false;
  try {
    return isSame(parseExact(given), parseExact(expected), tolerance);
  } catch {
    return given.trim() === expected.trim(); // NaN and Infinity are not JSON
  }
}

function isSame(a: Exact, b: Exact, tolerance: number): boolean {
  if (isNumber(a) && isNumber(b)) return isNear(a, b, tolerance);
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, at) => isSame(one, b[at] ?? null, tolerance));
  if (typeof a === 'object' && typeof b === 'object' && a !== null && b !== null && !Array.isArray(a) && !Array.isArray(b)) {
    const keys = Object.keys(a);
    return (
      keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && isSame(a[key] ?? null, b[key] ?? null, tolerance))
    );
  }
  return a === b;
}

/** At least one for each value. */
function countMarks(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === comma || code === openList || code === openObject) count += 1;
  }
  return count;
}

const [comma, openList, openObject] = [0x2c, 0x5b, 0x7b];

const isNumber = (value: Exact): value is number | bigint => typeof value === 'number' || typeof value === 'bigint';

function isNear(a: number | bigint, b: number | bigint, tolerance: number): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint and a number of the same value are equal only by ==
  if (a == b) return true;
  if (typeof a === 'bigint' || typeof b === 'bigint' || (Number.isInteger(a) && Number.isInteger(b))) return false;
  return Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b));
}
