// Real numbers with 640 bits and a bound of their error, so that two values are equal only where no digit that was computed tells them apart.

/** The value is mantissa × 2^exponent, and wrong by at most 2^error. */
export interface Real {
  readonly mantissa: bigint;
  readonly exponent: number;
  readonly error: number;
}

/** There is no value: a division by zero, a number that is too large. */
export class NoValue extends Error {}

const precision = 640;
/** Bits after the point inside the functions. */
const scale = 768;
const maxExponent = 1 << 30;
const exact = Number.NEGATIVE_INFINITY;

export const zero: Real = { mantissa: 0n, exponent: 0, error: exact };
export const fromInteger = (value: bigint): Real => round(value, 0, exact);
/** Any double is a whole number of 2^-60 here; smaller parts are dropped. */
export const fromDouble = (value: number): Real => round(BigInt(Math.round(value * 2 ** 60)), -60, exact);
export const withError = (value: Real, error: number): Real => ({ ...value, error: joinErrors(value.error, error) });

/** An upper bound of the logarithm to base 2, at most 4 too high. */
export function sizeOf({ mantissa, exponent }: Real): number {
  return mantissa === 0n ? Number.NEGATIVE_INFINITY : bitsOf(mantissa) + exponent;
}

export const bitsOf = (value: bigint): number => (value < 0n ? -value : value).toString(16).length * 4;

/** Whether nothing tells it from zero. */
export const isZero = (value: Real): boolean => value.mantissa === 0n || sizeOf(value) <= value.error + 4;
export const isNegative = (value: Real): boolean => value.mantissa < 0n && !isZero(value);

function joinErrors(...errors: readonly number[]): number {
  const largest = Math.max(...errors);
  if (largest === exact) return exact;
  return largest + Math.log2(errors.reduce((sum, one) => sum + 2 ** (one - largest), 0));
}

function round(mantissa: bigint, exponent: number, error: number): Real {
  const extra = bitsOf(mantissa) - precision;
  if (extra <= 8) return { mantissa, exponent, error };
  if (Math.abs(exponent + extra) > maxExponent) throw new NoValue('too large');
  return { mantissa: mantissa >> BigInt(extra), exponent: exponent + extra, error: joinErrors(error, exponent + extra) };
}

const shift = (value: bigint, by: number): bigint => (by >= 0 ? value << BigInt(by) : value >> BigInt(-by));

export const negate = (a: Real): Real => ({ ...a, mantissa: -a.mantissa });
export const minus = (a: Real, b: Real): Real => plus(a, negate(b));

export function plus(a: Real, b: Real): Real {
  if (a.mantissa === 0n) return withError(b, a.error);
  if (b.mantissa === 0n) return withError(a, b.error);
  const gap = sizeOf(a) - sizeOf(b);
  if (gap > precision + 64) return withError(a, joinErrors(b.error, sizeOf(b)));
  if (gap < -precision - 64) return withError(b, joinErrors(a.error, sizeOf(a)));
  const low = Math.min(a.exponent, b.exponent);
  const sum = shift(a.mantissa, a.exponent - low) + shift(b.mantissa, b.exponent - low);
  return round(sum, low, joinErrors(a.error, b.error));
}

export function times(a: Real, b: Real): Real {
  const error = joinErrors(a.error + sizeOf(b), b.error + sizeOf(a), a.error + b.error);
  return round(a.mantissa * b.mantissa, a.exponent + b.exponent, Number.isNaN(error) ? exact : error);
}

export function over(a: Real, b: Real): Real {
  if (isZero(b)) throw new NoValue('a division by zero');
  const extra = Math.max(0, precision + bitsOf(b.mantissa) - bitsOf(a.mantissa));
  const exponent = a.exponent - b.exponent - extra;
  const low = sizeOf(b) - 4;
  const error = joinErrors(a.error - low, b.error + sizeOf(a) - 2 * low, exponent);
  return round((a.mantissa << BigInt(extra)) / b.mantissa, exponent, error);
}

export function sqrt(a: Real): Real {
  if (isZero(a)) return { mantissa: 0n, exponent: 0, error: a.error / 2 };
  if (a.mantissa < 0n) throw new NoValue('a root of a negative number');
  const extra = Math.max(0, 2 * precision - bitsOf(a.mantissa));
  const even = extra + ((a.exponent - extra) % 2 === 0 ? 0 : 1);
  const exponent = (a.exponent - even) / 2;
  const root = integerRoot(a.mantissa << BigInt(even));
  return round(root, exponent, joinErrors(a.error - sizeOf(a) / 2 + 2, exponent));
}

function integerRoot(value: bigint): bigint {
  if (value < 2n) return value;
  let root = 1n << BigInt((bitsOf(value) + 1) >> 1);
  for (let next = (root + value / root) >> 1n; next < root; next = (root + value / root) >> 1n) root = next;
  return root;
}

/** As a whole number of 2^-768. */
function toFixed({ mantissa, exponent }: Real): bigint {
  if (bitsOf(mantissa) + exponent > 64) throw new NoValue('too large for this function');
  return exponent + scale < -4 * scale ? 0n : shift(mantissa, exponent + scale);
}

const one = 1n << BigInt(scale);
const by = (a: bigint, b: bigint): bigint => (a * b) >> BigInt(scale);

/** The sum of (-1)^k / ((2k + 1) n^(2k + 1)), or without the signs. */
function arcOfReciprocal(n: bigint, sign: bigint): bigint {
  let [power, sum, k] = [one / n, 0n, 0n];
  for (; power !== 0n; power = (sign * power) / (n * n), k += 1n) sum += power / (2n * k + 1n);
  return sum;
}

const fixedPi = 4n * (4n * arcOfReciprocal(5n, -1n) - arcOfReciprocal(239n, -1n));
const fixedLn2 = 2n * arcOfReciprocal(3n, 1n);
const fromFixed = (value: bigint, error: number): Real => round(value, -scale, error);
const lastBits = 40 - scale;

export const pi: Real = fromFixed(fixedPi, lastBits);

const halvings = 24n;

/** Of a number between -1 and 1. */
function fixedExp(x: bigint): bigint {
  const small = x >> halvings;
  let [sum, term] = [one, one];
  for (let k = 1n; term !== 0n && term !== -1n; k += 1n) {
    term = by(term, small) / k;
    sum += term;
  }
  for (let k = 0n; k < halvings; k += 1n) sum = by(sum, sum);
  return sum;
}

export function exp(x: Real): Real {
  if (sizeOf(x) > 34) throw new NoValue('too large');
  const fixed = toFixed(x);
  const twos = fixed / fixedLn2;
  const value = round(fixedExp(fixed - twos * fixedLn2), Number(twos) - scale, Number(twos) + lastBits + Math.max(0, sizeOf(x)));
  return withError(value, x.error + sizeOf(value));
}

export function ln(x: Real): Real {
  if (isZero(x) || x.mantissa < 0n) throw new NoValue('a logarithm of no positive number');
  const twos = sizeOf(x);
  const part = shift(x.mantissa, scale - bitsOf(x.mantissa));
  let y = BigInt(Math.round(Math.log(toDouble(part)) * 2 ** 50)) << BigInt(scale - 50);
  for (let step = 0; step < 3; step += 1) {
    const guess = fixedExp(y);
    y += (2n * (part - guess) * one) / (part + guess);
  }
  const large = Math.log2(Math.abs(twos) + 1);
  return fromFixed(y + BigInt(twos) * fixedLn2, joinErrors(lastBits + large, x.error - sizeOf(x) + 5));
}

const toDouble = (fixed: bigint): number => Number(fixed >> BigInt(scale - 200)) / 2 ** 200;

function fixedCosSin(angle: bigint): readonly [bigint, bigint] {
  const small = angle >> halvings;
  let [cos, sin, term] = [one, 0n, one];
  for (let k = 1n; term !== 0n && term !== -1n; k += 1n) {
    term = by(term, small) / k;
    if (k % 2n === 0n) cos += k % 4n === 0n ? term : -term;
    else sin += k % 4n === 1n ? term : -term;
  }
  for (let k = 0n; k < halvings; k += 1n) [cos, sin] = [by(cos, cos) - by(sin, sin), 2n * by(cos, sin)];
  return [cos, sin];
}

export function cosSin(x: Real): readonly [Real, Real] {
  const fixed = toFixed(x);
  const turns = fixed / (2n * fixedPi);
  const error = joinErrors(x.error, lastBits + Math.max(0, sizeOf(x)));
  const [cos, sin] = fixedCosSin(fixed - turns * 2n * fixedPi);
  return [fromFixed(cos, error), fromFixed(sin, error)];
}

/** The angle of the point (x, y). */
export function angleOf(y: Real, x: Real): Real {
  const size = Math.max(sizeOf(x), sizeOf(y));
  if (isZero(x) && isZero(y)) throw new NoValue('no angle');
  const [a, b] = [x, y].map((one) => toFixed({ ...one, exponent: one.exponent - size })) as [bigint, bigint];
  let angle = BigInt(Math.round(Math.atan2(toDouble(b), toDouble(a)) * 2 ** 50)) << BigInt(scale - 50);
  for (let step = 0; step < 3; step += 1) {
    const [cos, sin] = fixedCosSin(angle);
    angle += ((by(b, cos) - by(a, sin)) * one) / (by(a, cos) + by(b, sin));
  }
  return fromFixed(angle, joinErrors(lastBits, Math.max(x.error, y.error) - size + 6));
}

/** The nearest double. */
export function toNumber({ mantissa, exponent }: Real): number {
  const extra = Math.max(0, bitsOf(mantissa) - 64);
  return Number(mantissa >> BigInt(extra)) * 2 ** (exponent + extra);
}

/** The whole number that it is, if it is one as far as its digits say. */
export function toInteger(value: Real): bigint | undefined {
  const nearest = floorOf(plus(value, { mantissa: 1n, exponent: -1, error: exact }));
  return nearest !== undefined && isZero(minus(value, fromInteger(nearest))) ? nearest : undefined;
}

/** Rounded down; a value that may be whole is taken as whole. */
export function floorOf(value: Real): bigint | undefined {
  if (sizeOf(value) > precision || value.error > -8) return undefined;
  const down = shift(value.mantissa, value.exponent);
  return isZero(minus(value, fromInteger(down + 1n))) ? down + 1n : down;
}
