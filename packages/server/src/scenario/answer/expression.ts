// An expression of a short answer, and its values: exact where it is a fraction, otherwise in double precision at a point.

import * as complex from './complex.ts';
import { add, divide, multiply, power, type Rational, toNumber, toRational } from './rational.ts';

export type MathExpression =
  | { readonly kind: 'number'; readonly value: Rational; readonly isDecimal: boolean }
  | { readonly kind: 'symbol'; readonly name: string }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly MathExpression[] };

export const call = (name: string, ...args: MathExpression[]): MathExpression => ({ kind: 'call', name, args });

/** The exact value, if it is a fraction of moderate size. */
export function toExact(expression: MathExpression): Rational | undefined {
  if (expression.kind === 'number') return expression.value;
  if (expression.kind === 'symbol') return undefined;
  const args = expression.args.map(toExact);
  const [a, b] = args;
  if (args.includes(undefined) || a === undefined) return undefined;
  if (b === undefined) return exactOfOne(expression.name, a);
  switch (expression.name) {
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
      return b.top === 0n ? undefined : power(a, { top: b.bottom, bottom: b.top });
    case 'binomial':
      return a.bottom === 1n && b.bottom === 1n ? binomial(a.top, b.top) : undefined;
    default:
      return undefined;
  }
}

function exactOfOne(name: string, a: Rational): Rational | undefined {
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
      return a.bottom === 1n && a.top >= 0n && a.top <= 170n ? toRational(product(1n, a.top)) : undefined;
    default:
      return undefined;
  }
}

function floor(top: bigint, bottom: bigint): bigint {
  const whole = top / bottom;
  return top < 0n && whole * bottom !== top ? whole - 1n : whole;
}

function product(from: bigint, to: bigint): bigint {
  let result = 1n;
  for (let factor = from; factor <= to; factor += 1n) result *= factor;
  return result;
}

function binomial(n: bigint, k: bigint): Rational | undefined {
  if (k < 0n || n < k || n > 1000n) return undefined;
  return toRational(product(n - k + 1n, n), product(1n, k));
}

export type Point = ReadonlyMap<string, number>;

/** The value at a point. NaN where the expression has none, or contains what it cannot compute. */
export function valueAt(expression: MathExpression, point: Point): complex.Complex {
  if (expression.kind === 'number') return complex.fromReal(toNumber(expression.value));
  if (expression.kind === 'symbol') return constants.get(expression.name) ?? complex.fromReal(point.get(expression.name) ?? Number.NaN);
  const [a = complex.zero, b] = expression.args.map((one) => valueAt(one, point));
  if (b !== undefined) return (functionsOfTwo[expression.name] ?? nothing)(a, b);
  return (functionsOfOne[expression.name] ?? nothing)(a);
}

/** The names of its variables. */
export function symbolsOf(expression: MathExpression, found: Set<string> = new Set()): Set<string> {
  if (expression.kind === 'symbol' && !constants.has(expression.name)) found.add(expression.name);
  if (expression.kind === 'call') for (const one of expression.args) symbolsOf(one, found);
  return found;
}

/** Whether a part is written as a decimal number, which may have been rounded. */
export function hasDecimal(expression: MathExpression): boolean {
  if (expression.kind === 'call') return expression.args.some(hasDecimal);
  return expression.kind === 'number' && expression.isDecimal;
}

export const constants: ReadonlyMap<string, complex.Complex> = new Map([
  ['pi', complex.fromReal(Math.PI)],
  ['e', complex.fromReal(Math.E)],
  ['i', complex.imaginary],
  ['infinity', complex.fromReal(Number.POSITIVE_INFINITY)],
]);

const nothing = () => complex.fromReal(Number.NaN);

const functionsOfTwo: Readonly<Record<string, (a: complex.Complex, b: complex.Complex) => complex.Complex>> = {
  add: complex.plus,
  subtract: complex.minus,
  multiply: complex.times,
  divide: complex.over,
  fraction: complex.over,
  power: complex.toPower,
  root: (a, b) =>
    a.im === 0 && a.re < 0 && b.re % 2 === 1
      ? complex.fromReal(-((-a.re) ** (1 / b.re)))
      : complex.toPower(a, complex.over(complex.one, b)),
  log: (a, base) => complex.over(complex.log(a), complex.log(base)),
  binomial: (a, b) => ratioOfFactorials(a.re, b.re),
};

function ratioOfFactorials(n: number, k: number): complex.Complex {
  if (!Number.isInteger(k) || k < 0 || k > 1000) return nothing();
  let result = 1;
  for (let index = 1; index <= k; index += 1) result = (result * (n - k + index)) / index;
  return complex.fromReal(result);
}

const reciprocalOf = (compute: (a: complex.Complex) => complex.Complex) => (a: complex.Complex) => complex.over(complex.one, compute(a));
const tan = (a: complex.Complex) => complex.over(complex.sin(a), complex.cos(a));

export const functionsOfOne: Readonly<Record<string, (a: complex.Complex) => complex.Complex>> = {
  negate: (a) => complex.minus(complex.zero, a),
  abs: (a) => complex.fromReal(complex.sizeOf(a)),
  percent: (a) => complex.over(a, complex.fromReal(100)),
  degrees: (a) => complex.times(a, complex.fromReal(Math.PI / 180)),
  sqrt: complex.sqrt,
  exp: complex.exp,
  ln: complex.log,
  log: complex.log,
  lg: (a) => complex.over(complex.log(a), complex.fromReal(Math.LN10)),
  sin: complex.sin,
  cos: complex.cos,
  tan,
  sec: reciprocalOf(complex.cos),
  csc: reciprocalOf(complex.sin),
  cot: reciprocalOf(tan),
  sinh: complex.ofReal(Math.sinh),
  cosh: complex.ofReal(Math.cosh),
  tanh: complex.ofReal(Math.tanh),
  arcsin: complex.ofReal(Math.asin),
  arccos: complex.ofReal(Math.acos),
  arctan: complex.ofReal(Math.atan),
  floor: complex.ofReal(Math.floor),
  ceil: complex.ofReal(Math.ceil),
  factorial: (a) => (a.im === 0 && Number.isInteger(a.re) && a.re >= 0 && a.re <= 170 ? complex.fromReal(factorial(a.re)) : nothing()),
};

function factorial(n: number): number {
  let result = 1;
  for (let factor = 2; factor <= n; factor += 1) result *= factor;
  return result;
}
