// Exact fractions of bounded size: what exceeds the bound is undefined, so that no answer can make the arithmetic slow.

export interface Rational {
  readonly top: bigint;
  /** Always positive. */
  readonly bottom: bigint;
}

const maxBits = 4096;
const maxExponent = 2000n;

export function toRational(top: bigint, bottom = 1n): Rational | undefined {
  if (bottom === 0n || isLarge(top) || isLarge(bottom)) return undefined;
  const divisor = gcd(top < 0n ? -top : top, bottom < 0n ? -bottom : bottom);
  const sign = bottom < 0n ? -1n : 1n;
  return { top: (sign * top) / divisor, bottom: (sign * bottom) / divisor };
}

/** From digits with an optional point and exponent. */
export function parseDecimal(text: string): Rational | undefined {
  const match = /^(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,4}))?$/i.exec(text);
  const [, whole = '', part = '', exponent = '0'] = match ?? [];
  if (!match || whole + part === '' || whole.length + part.length > 1000) return undefined;
  const shift = Number(exponent) - part.length;
  if (Math.abs(shift) > 1000) return undefined;
  const digits = BigInt(whole + part);
  return shift >= 0 ? toRational(digits * 10n ** BigInt(shift)) : toRational(digits, 10n ** BigInt(-shift));
}

export function add(a: Rational, b: Rational): Rational | undefined {
  return toRational(a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom);
}

export function multiply(a: Rational, b: Rational): Rational | undefined {
  return toRational(a.top * b.top, a.bottom * b.bottom);
}

export function divide(a: Rational, b: Rational): Rational | undefined {
  return b.top === 0n ? undefined : toRational(a.top * b.bottom, a.bottom * b.top);
}

/** Only whole exponents; a root is exact where both parts have one. */
export function power(base: Rational, exponent: Rational): Rational | undefined {
  if (exponent.bottom === 2n && base.top >= 0n) {
    const root = toRationalRoot(base);
    return root && power(root, { top: exponent.top, bottom: 1n });
  }
  if (exponent.bottom !== 1n) return undefined;
  const times = exponent.top < 0n ? -exponent.top : exponent.top;
  const bits = BigInt(Math.max(bitsOf(base.top), bitsOf(base.bottom)));
  if (times > maxExponent || bits * times > BigInt(maxBits)) return undefined;
  const [top, bottom] = [base.top ** times, base.bottom ** times];
  return exponent.top < 0n ? toRational(bottom, top) : toRational(top, bottom);
}

function toRationalRoot({ top, bottom }: Rational): Rational | undefined {
  const [a, b] = [rootOf(top), rootOf(bottom)];
  return a === undefined || b === undefined ? undefined : toRational(a, b);
}

/** The whole square root, if there is one. */
function rootOf(value: bigint): bigint | undefined {
  if (value < 2n) return value;
  let root = 1n << BigInt((bitsOf(value) + 1) >> 1);
  for (let next = (root + value / root) >> 1n; next < root; next = (root + value / root) >> 1n) root = next;
  return root * root === value ? root : undefined;
}

export function isEqual(a: Rational, b: Rational): boolean {
  return a.top === b.top && a.bottom === b.bottom;
}

export function toNumber({ top, bottom }: Rational): number {
  const shift = Math.max(0, Math.max(bitsOf(top), bitsOf(bottom)) - 1000);
  if (shift === 0) return Number(top) / Number(bottom);
  return Number(top >> BigInt(shift)) / Number(bottom >> BigInt(shift));
}

function isLarge(value: bigint): boolean {
  return bitsOf(value) > maxBits;
}

function bitsOf(value: bigint): number {
  return (value < 0n ? -value : value).toString(16).length * 4;
}

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x === 0n ? 1n : x;
}
