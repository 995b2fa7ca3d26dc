// The functions that short answers use, of complex numbers of bounded error.

import type { Complex } from './complex.ts';
import * as complex from './complex.ts';
import { maxFactorial, product } from './exact.ts';
import * as real from './real.ts';

export const cheapFunctions: ReadonlySet<string> = new Set([
  'add',
  'subtract',
  'multiply',
  'divide',
  'fraction',
  'negate',
  'abs',
  'percent',
  'degrees',
  'conjugate',
]);

type LogBase = 'e' | '10';
type MathFunction = (values: readonly Complex[], logBase: LogBase) => Complex;

const ofOne =
  (compute: (a: Complex) => Complex): MathFunction =>
  ([a]) =>
    compute(given(a));
const ofTwo =
  (compute: (a: Complex, b: Complex) => Complex): MathFunction =>
  ([a, b]) =>
    compute(given(a), given(b));

const { fromInteger, fromReal, one, over, two } = complex;
const cos = (a: Complex): Complex => complex.cosSin(a)[0];
const sin = (a: Complex): Complex => complex.cosSin(a)[1];
const tan = (a: Complex): Complex => over(sin(a), cos(a));
const reciprocalOf = (compute: (a: Complex) => Complex) => (a: Complex) => over(one, compute(a));
const ten = fromInteger(10);
const hyperbolic = (sign: Complex) => (a: Complex) => {
  const size = complex.exp(a);
  return over(complex.plus(size, complex.times(sign, over(one, size))), two);
};
const [sinh, cosh] = [hyperbolic(fromInteger(-1)), hyperbolic(one)];

function wholePart(a: Complex, sign: 1n | -1n): Complex {
  const whole = complex.isReal(a) ? real.floorOf(sign === 1n ? a.re : real.negate(a.re)) : undefined;
  if (whole === undefined) throw new real.NoValue('no whole part');
  return fromInteger(sign * whole);
}

function factorial(a: Complex): Complex {
  const n = complex.isReal(a) ? real.toInteger(a.re) : undefined;
  if (n === undefined || n < 0n || n > maxFactorial) throw new real.NoValue('no factorial');
  return fromInteger(product(1n, n));
}

/** Also of other numbers above: n(n - 1)/2 for any n. */
function choose(n: Complex, k: Complex): Complex {
  const count = complex.isReal(k) ? real.toInteger(k.re) : undefined;
  if (count === undefined || count < 0n || count > maxFactorial) throw new real.NoValue('no binomial');
  let result = one;
  for (let index = 0n; index < count; index += 1n)
    result = over(complex.times(result, complex.minus(n, fromInteger(index))), fromInteger(index + 1n));
  return result;
}

const largest = (sign: 1 | -1) => (values: readonly Complex[]) =>
  values.reduce((a, b) => (real.isNegative(real.minus(a.re, b.re)) === (sign === 1) ? b : a));

export const functions: Readonly<Record<string, MathFunction>> = {
  add: ofTwo(complex.plus),
  subtract: ofTwo(complex.minus),
  multiply: ofTwo(complex.times),
  divide: ofTwo(over),
  fraction: ofTwo(over),
  root: ofTwo((a, degree) => {
    const whole = real.toInteger(degree.re);
    return whole === undefined || whole <= 0n ? complex.toPower(a, over(one, degree)) : complex.rootOf(a, whole);
  }),
  binomial: ofTwo(choose),
  negate: ofOne(complex.negate),
  abs: ofOne((a) => fromReal(complex.absOf(a))),
  percent: ofOne((a) => over(a, fromInteger(100))),
  degrees: ofOne((a) => over(complex.times(a, complex.pi), fromInteger(180))),
  sqrt: ofOne(complex.sqrt),
  exp: ofOne(complex.exp),
  ln: ofOne(complex.ln),
  log: ([a, base], logBase) => {
    if (base === undefined && logBase === 'e') return complex.ln(given(a));
    return over(complex.ln(given(a)), complex.ln(base ?? ten));
  },
  lg: ofOne((a) => over(complex.ln(a), complex.ln(ten))),
  sin: ofOne(sin),
  cos: ofOne(cos),
  tan: ofOne(tan),
  cis: ofOne((a) => complex.plus(cos(a), complex.times(complex.imaginary, sin(a)))),
  sec: ofOne(reciprocalOf(cos)),
  csc: ofOne(reciprocalOf(sin)),
  cot: ofOne((a) => over(cos(a), sin(a))),
  sinh: ofOne(sinh),
  cosh: ofOne(cosh),
  tanh: ofOne((a) => over(sinh(a), cosh(a))),
  arcsin: ofOne(complex.arcsin),
  arccos: ofOne((a) => complex.minus(over(complex.pi, two), complex.arcsin(a))),
  arctan: ofOne(complex.arctan),
  arccot: ofOne((a) => complex.minus(over(complex.pi, two), complex.arctan(a))),
  conjugate: ofOne(({ re, im }) => ({ re, im: real.negate(im) })),
  floor: ofOne((a) => wholePart(a, 1n)),
  ceil: ofOne((a) => wholePart(a, -1n)),
  factorial: ofOne(factorial),
  max: largest(1),
  min: largest(-1),
};

function given(value: Complex | undefined): Complex {
  if (value === undefined) throw new real.NoValue('no value');
  return value;
}

/** Functions of one argument that are written by name. */
export const namedFunctions: ReadonlySet<string> = new Set([
  ...['exp', 'ln', 'log', 'lg', 'sin', 'cos', 'tan', 'sec', 'csc', 'cot', 'cis', 'sinh', 'cosh', 'tanh'],
  ...['arcsin', 'arccos', 'arctan', 'arccot', 'sqrt', 'abs', 'floor', 'ceil'],
]);
/** Functions of several arguments. */
export const manyFunctions: ReadonlySet<string> = new Set(['max', 'min', 'gcd', 'lcm']);
