// Functions of fractions whose values are fractions of bounded size.

import { add, divide, gcd, multiply, power, type Rational, toRational } from './rational.ts';

export const maxFactorial = 1000n;

export function exactOfTwo(name: string, a: Rational, b: Rational): Rational | undefined {
  switch (name) {
    case 'add':
      return add(a, b);
    case 'subtract':
      return add(a, { top: -b.top, bottom: b.bottom });
    case 'multiply':
      return multiply(a, b);
    case 'fraction':
    case 'divide':
      return divide(a, b);
    case 'power':
      return power(a, b);
    case 'root':
      return b.top <= 0n ? undefined : power(a, { top: b.bottom, bottom: b.top });
    case 'binomial':
      return a.bottom === 1n && b.bottom === 1n ? binomial(a.top, b.top) : undefined;
    default:
      return undefined;
  }
}

export function exactOfOne(name: string, a: Rational): Rational | undefined {
  switch (name) {
    case 'negate':
      return { top: -a.top, bottom: a.bottom };
    case 'abs':
      return { top: a.top < 0n ? -a.top : a.top, bottom: a.bottom };
    case 'sqrt':
      return power(a, { top: 1n, bottom: 2n });
    case 'percent':
      return toRational(a.top, a.bottom * 100n);
    case 'floor':
    case 'ceil':
      return toRational(name === 'floor' ? floor(a.top, a.bottom) : -floor(-a.top, a.bottom));
    case 'factorial':
      return a.bottom === 1n && a.top >= 0n && a.top <= maxFactorial ? toRational(product(1n, a.top)) : undefined;
    default:
      return undefined;
  }
}

const wholeOf = (values: readonly Rational[]): readonly bigint[] | undefined =>
  values.every(({ bottom }) => bottom === 1n) ? values.map(({ top }) => (top < 0n ? -top : top)) : undefined;
const isLess = (a: Rational, b: Rational): boolean => a.top * b.bottom < b.top * a.bottom;

export const exactOfMany: Readonly<Record<string, (values: readonly Rational[]) => Rational | undefined>> = {
  max: (values) => values.reduce((a, b) => (isLess(a, b) ? b : a)),
  min: (values) => values.reduce((a, b) => (isLess(b, a) ? b : a)),
  gcd: (values) => toWhole(wholeOf(values)?.reduce((a, b) => gcd(a, b))),
  lcm: (values) => toWhole(wholeOf(values)?.reduce((a, b) => (a === 0n || b === 0n ? 0n : (a * b) / gcd(a, b)))),
};
const toWhole = (value: bigint | undefined): Rational | undefined => (value === undefined ? undefined : toRational(value));

function floor(top: bigint, bottom: bigint): bigint {
  const whole = top / bottom;
  return top < 0n && whole * bottom !== top ? whole - 1n : whole;
}

export function product(from: bigint, to: bigint): bigint {
  let result = 1n;
  for (let factor = from; factor <= to; factor += 1n) result *= factor;
  return result;
}

function binomial(n: bigint, k: bigint): Rational | undefined {
  if (k < 0n || n < k || n > maxFactorial) return undefined;
  return toRational(product(n - k + 1n, n), product(1n, k));
}
