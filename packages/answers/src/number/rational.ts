// Exact fractions of bounded size: what exceeds the bound is undefined, so that no answer can make the arithmetic slow.

import { bitsOf } from './real.ts';

export interface Rational {
  readonly top: bigint;
  /** Always positive. */
  readonly bottom: bigint;
}

const maxBits = 4096;
const maxExponent = 2000n;

export function toRational(top: bigint, bottom = 1n): Rational | undefined {
  if (bottom === 0n || isLarge(top) || isLarge(bottom)) return undefined;
  if (bottom === 1n) return { top, bottom };
  const divisor = gcd(top < 0n ? -top : top, bottom < 0n ? -bottom : bottom);
  const sign = bottom < 0n ? -1n : 1n;
  return { top: (sign * top) / divisor, bottom: (sign * bottom) / divisor };
}

/** From digits with an optional point. */
export function parseDecimal(text: string): Rational | undefined {
  const [whole = '', part = ''] = text.split('.');
  if (whole + part === '' || whole.length + part.length > 1000) return undefined;
  return toRational(BigInt(whole + part), 10n ** BigInt(part.length));
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

const maxRoot = 64n;

/** A root is exact where both parts have one. */
export function power(base: Rational, exponent: Rational): Rational | undefined {
  if (exponent.bottom !== 1n) {
    const root = exponent.bottom > maxRoot ? undefined : toRationalRoot(base, exponent.bottom);
    return root && power(root, { top: exponent.top, bottom: 1n });
  }
  const times = exponent.top < 0n ? -exponent.top : exponent.top;
  const bits = BigInt(Math.max(bitsOf(base.top), bitsOf(base.bottom)));
  const isUnit = base.bottom === 1n && base.top <= 1n && base.top >= -1n;
  if (!isUnit && (times > maxExponent || bits * times > BigInt(maxBits))) return undefined;
  const reduced = isUnit ? times % 2n : times;
  const [top, bottom] = [base.top ** (isUnit && times > 0n && reduced === 0n ? 2n : reduced), base.bottom ** reduced];
  return exponent.top < 0n ? toRational(bottom, top) : toRational(top, bottom);
}

function toRationalRoot({ top, bottom }: Rational, degree: bigint): Rational | undefined {
  if (top < 0n && degree % 2n === 0n) return undefined;
  const [a, b] = [rootOf(top < 0n ? -top : top, degree), rootOf(bottom, degree)];
  return a === undefined || b === undefined ? undefined : toRational(top < 0n ? -a : a, b);
}

/** The whole root, if there is one. */
function rootOf(value: bigint, degree: bigint): bigint | undefined {
  if (value < 2n) return value;
  let root = 1n << BigInt(Math.ceil(bitsOf(value) / Number(degree)));
  for (;;) {
    const next = ((degree - 1n) * root + value / root ** (degree - 1n)) / degree;
    if (next >= root) break;
    root = next;
  }
  return root ** degree === value ? root : undefined;
}

export function isEqual(a: Rational, b: Rational): boolean {
  return a.top === b.top && a.bottom === b.bottom;
}

function isLarge(value: bigint): boolean {
  return bitsOf(value) > maxBits;
}

/** How much work a step with it is. */
export const sizeOf = ({ top, bottom }: Rational): number => (bottom === 1n ? 1 : 1 + (bitsOf(top) + bitsOf(bottom)) / 8);

export function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x === 0n ? 1n : x;
}
