// Whether two expressions are equal: exactly where both are fractions, otherwise by hundreds of digits of their values at a few fixed points.

import type { Evaluator, Point } from '../expression/evaluate.ts';
import {
  call,
  type Decimal,
  hasCall,
  hasSymbol,
  type MathExpression,
  renderStructure,
  symbolsOf,
  toDecimal,
} from '../expression/expression.ts';
import type { Complex } from '../number/complex.ts';
import * as complex from '../number/complex.ts';
import { isEqual } from '../number/rational.ts';
import * as real from '../number/real.ts';

const points = 8;
const positivePoints = 5;
const neededPoints = 3;
const maxSymbols = 12;
/** Equal values agree in at least so many of their bits. */
const neededBits = 60;
/** A number with so many decimals may have been rounded. */
const minDecimals = 6;

export function isSameExpression(a: MathExpression, b: MathExpression, evaluator: Evaluator): boolean {
  evaluator.spend(5);
  const [exactA, exactB] = [evaluator.exact(a), evaluator.exact(b)];
  if (exactA && exactB) return isEqual(exactA, exactB) || isRounded(a, b, evaluator);
  const same = compareAtPoints(a, b, evaluator, isSameValue);
  return same === true || (same === undefined && renderStructure(a) === renderStructure(b)) || isRounded(a, b, evaluator);
}

/** Whether one is written with six decimals or more, and is the other one rounded to these. */
function isRounded(a: MathExpression, b: MathExpression, evaluator: Evaluator): boolean {
  const [left, right] = [toDecimal(a), toDecimal(b)];
  return (left !== undefined && isRoundedTo(b, left, evaluator)) || (right !== undefined && isRoundedTo(a, right, evaluator));
}

function isRoundedTo(expression: MathExpression, decimal: Decimal, evaluator: Evaluator): boolean {
  const digits = String(decimal.value.top < 0n ? -decimal.value.top : decimal.value.top).length;
  const other = toDecimal(expression);
  if (decimal.decimals < minDecimals || digits < minDecimals || (other !== undefined && other.decimals <= decimal.decimals)) return false;
  return roundsTo(expression, decimal, evaluator);
}

/** Whether the decimal is the value of the expression, rounded. */
export function roundsTo(expression: MathExpression, { value: expected, decimals }: Decimal, evaluator: Evaluator): boolean {
  const value = evaluator.value(expression, new Map());
  if (value === undefined || !complex.isReal(value)) return false;
  const half = complex.over(complex.one, complex.fromInteger(2n * 10n ** BigInt(decimals)));
  const distance = complex.absOf(complex.minus(value, complex.fromRational(expected)));
  return !real.isNegative(real.minus(half.re, distance));
}

/** Whether one is the other times a number; a positive one if `sign` is set. */
export function isMultiple(a: MathExpression, b: MathExpression, evaluator: Evaluator, sign?: 'positive'): boolean {
  let factor: Complex | undefined;
  const same = compareAtPoints(a, b, evaluator, (x, y) => {
    if (complex.isZero(x) || complex.isZero(y)) return complex.isZero(x) && complex.isZero(y);
    const ratio = complex.over(x, y);
    factor ??= ratio;
    return isSameValue(ratio, factor) && !(sign && (!complex.isReal(ratio) || ratio.re.mantissa <= 0n));
  });
  return (same ?? false) && factor !== undefined;
}

/** Whether both are zero for the same value of a name in which they are linear: `xy - 1` and `y - 1/x` are. */
export function hasSameZero(a: MathExpression, b: MathExpression, evaluator: Evaluator): boolean {
  const names = [...symbolsOf(a, symbolsOf(b))].sort();
  return names.some((name) => {
    const zeroOf = (expression: MathExpression, point: Point): Complex | undefined => {
      const [zero, one, two] = [0, 1, 2].map((at) => evaluator.value(expression, new Map([...point, [name, complex.fromInteger(at)]])));
      if (!zero || !one || !two) return undefined;
      const slope = complex.minus(one, zero);
      const isLinear = complex.isZero(complex.minus(complex.minus(two, one), slope)) && !complex.isZero(slope);
      return isLinear ? complex.negate(complex.over(zero, slope)) : undefined;
    };
    let compared = 0;
    for (const point of pointsFor([a, b], names)) {
      const [x, y] = [zeroOf(a, point), zeroOf(b, point)];
      if (!x || !y || !isSameValue(x, y)) return false;
      compared += 1;
    }
    return compared === points;
  });
}

type ValueComparison = (x: Complex, y: Complex) => boolean;

/** Undefined if too few points have a value. */
function compareAtPoints(a: MathExpression, b: MathExpression, evaluator: Evaluator, isSame: ValueComparison): boolean | undefined {
  const symbols = [...symbolsOf(a, symbolsOf(b))].sort();
  if (symbols.length > maxSymbols) return undefined;
  const isComplex = hasSymbol(a, 'i') || hasSymbol(b, 'i');
  let compared = 0;
  for (const [index, point] of pointsFor([a, b], symbols).entries()) {
    const [x, y] = [evaluator.value(a, point), evaluator.value(b, point)];
    const isOutside = index >= positivePoints && !isComplex;
    if (isOutside && (!x || !y || !complex.isReal(x) || !complex.isReal(y))) continue;
    // Both have no real value here, as logarithms of negative numbers: an identity holds up to their branches.
    if (x && y && symbols.length > 0 && !isComplex && !complex.isReal(x) && !complex.isReal(y)) continue;
    // Where whole numbers are needed, a factorial may have no value.
    if (!x !== !y && !isWholeNeeded([a, b])) return false;
    if (!x || !y) continue;
    if (!isSame(x, y)) return false;
    compared += 1;
    if (symbols.length === 0) return true;
  }
  if (compared >= neededPoints) return true;
  // Where logarithms and roots have real values only between -1 and 1.
  const isSmall = symbols.length > 0 && !isComplex && !isWholeNeeded([a, b]);
  const seen = isSmall ? smallPoints(symbols).map((point) => [evaluator.value(a, point), evaluator.value(b, point)]) : [];
  const inside = seen.flatMap(([x, y]) => (x && y && complex.isReal(x) && complex.isReal(y) ? [isSame(x, y)] : []));
  if (inside.includes(false)) return false;
  return compared + inside.length >= neededPoints && inside.length > 0 ? true : undefined;
}

const smallShares = [0.17, 0.43, -0.31, 0.71, -0.62];

const smallPoints = (symbols: readonly string[]): readonly Point[] =>
  smallShares.map((share) => new Map(symbols.map((name, index) => [name, complex.fromReal(real.fromDouble(share / (1 + index / 3)))])));

const wholeCalls: ReadonlySet<string> = new Set(['sum', 'product', 'factorial', 'binomial']);

/** Whole numbers where a sum or a factorial needs them, and where a power of -1 does. */
function pointsFor(expressions: readonly MathExpression[], symbols: readonly string[]): readonly Point[] {
  const isWhole = symbols.length > 0 && isWholeNeeded(expressions);
  return Array.from({ length: points }, (_, point) => {
    const values = symbols.map((name, index) => [name, isWhole ? wholeCoordinate(point, index) : coordinate(point, index)] as const);
    return new Map(values);
  });
}

const isWholeNeeded = (expressions: readonly MathExpression[]): boolean =>
  expressions.some((one) => hasCall(one, wholeCalls) || hasNegativeBase(one));

function hasNegativeBase(expression: MathExpression): boolean {
  if (expression.kind !== 'call') return false;
  const [base, exponent] = expression.args;
  const isNegative = base?.kind === 'call' && base.name === 'negate' && symbolsOf(base).size === 0;
  if (expression.name === 'power' && isNegative && exponent && symbolsOf(exponent).size > 0) return true;
  return expression.args.some(hasNegativeBase);
}

const wholeCoordinate = (point: number, index: number): Complex => complex.fromInteger(2 + ((point * (index + 2) + 3 * index) % 11));

/** Fixed points of both signs; the first ones are positive, so that roots and logarithms have values. */
function coordinate(point: number, index: number): Complex {
  const share = ((point + 1) * 0.754877666 + (index + 1) * 0.569840291) % 1;
  return complex.fromReal(real.fromDouble((0.3 + 2.4 * share) * (point >= positivePoints ? -1 : 1)));
}

function isSameValue(a: Complex, b: Complex): boolean {
  const difference = complex.minus(a, b);
  if (!complex.isZero(difference)) return false;
  const error = complex.errorOf(difference);
  return error < -2 * neededBits || error < Math.max(complex.sizeOf(a), complex.sizeOf(b)) - neededBits;
}

const arbitrary: ReadonlySet<string> = new Set(['C', 'c', 'K', 'k', 'C_1']);

/** The constant of an integral has no fixed name: each is renamed to C. */
export function renameArbitrary(expression: MathExpression): MathExpression {
  if (expression.kind !== 'call' || expression.name !== 'add') return expression;
  const [body, constant] = expression.args;
  if (!body || constant?.kind !== 'symbol' || !arbitrary.has(constant.name) || hasSymbol(body, constant.name)) return expression;
  return call('add', body, { kind: 'symbol', name: 'C' });
}
