// Complex numbers of bounded error, with the functions that short answers use.

import type { Rational } from './rational.ts';
import * as real from './real.ts';

export interface Complex {
  readonly re: real.Real;
  readonly im: real.Real;
}

export const fromReal = (re: real.Real): Complex => ({ re, im: real.zero });
export const fromInteger = (value: bigint | number): Complex => fromReal(real.fromInteger(BigInt(value)));
export const fromRational = ({ top, bottom }: Rational): Complex =>
  fromReal(bottom === 1n ? real.fromInteger(top) : real.over(real.fromInteger(top), real.fromInteger(bottom)));
export const zero: Complex = fromReal(real.zero);
export const one: Complex = fromInteger(1);
export const two: Complex = fromInteger(2);
export const imaginary: Complex = { re: real.zero, im: real.fromInteger(1n) };
export const pi: Complex = fromReal(real.pi);

export const isReal = ({ im }: Complex): boolean => real.isZero(im);
export const isZero = ({ re, im }: Complex): boolean => real.isZero(re) && real.isZero(im);
/** An upper bound of the logarithm to base 2 of its absolute value. */
export const sizeOf = ({ re, im }: Complex): number => Math.max(real.sizeOf(re), real.sizeOf(im)) + 1;
export const errorOf = ({ re, im }: Complex): number => Math.max(re.error, im.error) + 1;

export const plus = (a: Complex, b: Complex): Complex => ({ re: real.plus(a.re, b.re), im: real.plus(a.im, b.im) });
export const negate = (a: Complex): Complex => ({ re: real.negate(a.re), im: real.negate(a.im) });
export const minus = (a: Complex, b: Complex): Complex => plus(a, negate(b));

const isExactlyReal = ({ im }: Complex): boolean => im.mantissa === 0n && im.error === Number.NEGATIVE_INFINITY;

export function times(a: Complex, b: Complex): Complex {
  if (isExactlyReal(a) && isExactlyReal(b)) return fromReal(real.times(a.re, b.re));
  return {
    re: real.minus(real.times(a.re, b.re), real.times(a.im, b.im)),
    im: real.plus(real.times(a.re, b.im), real.times(a.im, b.re)),
  };
}

export function over(a: Complex, b: Complex): Complex {
  if (isExactlyReal(b)) return { re: real.over(a.re, b.re), im: a.im.mantissa === 0n ? a.im : real.over(a.im, b.re) };
  const size = real.plus(real.times(b.re, b.re), real.times(b.im, b.im));
  const product = times(a, { re: b.re, im: real.negate(b.im) });
  return { re: real.over(product.re, size), im: real.over(product.im, size) };
}

export function absOf({ re, im }: Complex): real.Real {
  if (real.isZero(im)) return re.mantissa < 0n ? real.negate(re) : re;
  return real.sqrt(real.plus(real.times(re, re), real.times(im, im)));
}

export function exp({ re, im }: Complex): Complex {
  const size = real.exp(re);
  if (im.mantissa === 0n) return fromReal(size);
  const [cos, sin] = real.cosSin(im);
  return { re: real.times(size, cos), im: real.times(size, sin) };
}

/** The principal value. */
export function ln(a: Complex): Complex {
  if (isReal(a) && !real.isNegative(a.re)) return fromReal(real.ln(a.re));
  return { re: real.ln(absOf(a)), im: isReal(a) ? real.pi : real.angleOf(a.im, a.re) };
}

export function sqrt(a: Complex): Complex {
  if (isReal(a)) return real.isNegative(a.re) ? { re: real.zero, im: real.sqrt(real.negate(a.re)) } : fromReal(real.sqrt(a.re));
  return exp(over(ln(a), two));
}

const maxRepeats = 4096n;

export function toPower(base: Complex, exponent: Complex): Complex {
  const whole = isReal(exponent) ? real.toInteger(exponent.re) : undefined;
  if (whole === 0n) return one;
  if (whole !== undefined && whole <= maxRepeats && whole >= -maxRepeats)
    return whole > 0n ? repeated(base, whole) : over(one, repeated(base, -whole));
  if (isZero(base)) {
    if (isReal(exponent) && exponent.re.mantissa > 0n) return zero;
    throw new real.NoValue('a power of zero');
  }
  if (whole !== undefined && isReal(base) && real.isNegative(base.re)) {
    const size = exp(times(exponent, ln(negate(base))));
    return whole % 2n === 0n ? size : negate(size);
  }
  return exp(times(exponent, ln(base)));
}

function repeated(base: Complex, times_: bigint): Complex {
  let [result, square] = [one, base];
  for (let left = times_; left > 0n; left >>= 1n) {
    if (left & 1n) result = times(result, square);
    if (left > 1n) square = times(square, square);
  }
  return result;
}

/** Odd roots of negative numbers are negative. */
export function rootOf(base: Complex, degree: bigint): Complex {
  const isOdd = degree % 2n !== 0n;
  if (isOdd && isReal(base) && real.isNegative(base.re)) return negate(toPower(negate(base), over(one, fromInteger(degree))));
  return degree === 2n ? sqrt(base) : toPower(base, over(one, fromInteger(degree)));
}

export function cosSin(a: Complex): readonly [Complex, Complex] {
  if (isReal(a)) {
    const [cos, sin] = real.cosSin(a.re);
    return [fromReal(cos), fromReal(sin)];
  }
  const turned = exp(times(imaginary, a));
  const back = over(one, turned);
  return [over(plus(turned, back), two), over(minus(turned, back), times(two, imaginary))];
}

export function arctan(a: Complex): Complex {
  if (isReal(a)) return fromReal(real.angleOf(a.re, real.fromInteger(1n)));
  const ia = times(imaginary, a);
  return over(minus(ln(plus(one, ia)), ln(minus(one, ia))), times(two, imaginary));
}

export function arcsin(a: Complex): Complex {
  const side = sqrt(minus(one, times(a, a)));
  if (isReal(a) && isReal(side)) return fromReal(real.angleOf(a.re, side.re));
  return over(ln(plus(times(imaginary, a), side)), imaginary);
}
