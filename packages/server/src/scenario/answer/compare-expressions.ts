// Whether two expressions are equal: exactly where both are fractions, otherwise by their values at a few fixed points.

import { type Complex, minus, over, sizeOf } from './complex.ts';
import { hasDecimal, type MathExpression, symbolsOf, toExact, valueAt } from './expression.ts';
import { add, isEqual, type Rational, toNumber } from './rational.ts';

const points = 8;
const neededPoints = 3;
const maxSymbols = 12;
/** Values in double precision of equal expressions differ by less. */
const rounding = 1e-9;
/** How far a number that was written with six decimals may be from the exact one. */
const writtenRounding = 5.01e-7;

export function isSameExpression(a: MathExpression, b: MathExpression): boolean {
  const [exactA, exactB] = [toExact(a), toExact(b)];
  if (exactA && exactB && isEqual(exactA, exactB)) return true;
  const isRounded = hasDecimal(a) || hasDecimal(b);
  if (exactA && exactB) return isRounded && isRoundedTo(exactA, exactB);
  const symbols = [...symbolsOf(a, symbolsOf(b))].sort();
  if (symbols.length === 0) return isSameValue(valueAt(a, new Map()), valueAt(b, new Map()), isRounded) || isSameText(a, b);
  return compareAtPoints(a, b, (x, y) => isSameValue(x, y, isRounded)) ?? isSameText(a, b);
}

/** Whether one is the other times a number; a positive one if `sign` is set. Undefined if that cannot be found out. */
export function isMultiple(a: MathExpression, b: MathExpression, sign?: 'positive'): boolean {
  let factor: Complex | undefined;
  const same = compareAtPoints(a, b, (x, y) => {
    if (sizeOf(x) < rounding || sizeOf(y) < rounding) return sizeOf(x) < rounding && sizeOf(y) < rounding;
    const ratio = over(x, y);
    factor ??= ratio;
    return isSameValue(ratio, factor, false) && !(sign && (ratio.re <= 0 || Math.abs(ratio.im) > rounding));
  });
  return (same ?? false) && factor !== undefined;
}

function compareAtPoints(a: MathExpression, b: MathExpression, isSame: (x: Complex, y: Complex) => boolean): boolean | undefined {
  const symbols = [...symbolsOf(a, symbolsOf(b))].sort();
  if (symbols.length > maxSymbols) return undefined;
  let compared = 0;
  for (let point = 0; point < points; point += 1) {
    const values = new Map(symbols.map((name, index) => [name, coordinate(point, index)]));
    const [x, y] = [valueAt(a, values), valueAt(b, values)];
    const [hasX, hasY] = [hasValue(x), hasValue(y)];
    if (hasX !== hasY) return false;
    if (!hasX) continue;
    if (!isSame(x, y)) return false;
    compared += 1;
  }
  return compared >= neededPoints ? true : undefined;
}

/** Fixed irrational points of both signs; the first ones are positive, so that roots and logarithms have values. */
function coordinate(point: number, index: number): number {
  const share = ((point + 1) * 0.754877666 + (index + 1) * 0.569840291) % 1;
  return (0.3 + 2.4 * share) * (point >= 5 ? -1 : 1);
}

const hasValue = ({ re, im }: Complex): boolean => Number.isFinite(re) && Number.isFinite(im);

function isSameValue(a: Complex, b: Complex, isRounded: boolean): boolean {
  if (!hasValue(a) || !hasValue(b)) return false;
  const [distance, size] = [sizeOf(minus(a, b)), Math.max(sizeOf(a), sizeOf(b))];
  if (distance <= rounding * size + 1e-13) return true;
  return isRounded && distance <= Math.min(writtenRounding, 2e-6 * size);
}

function isRoundedTo(a: Rational, b: Rational): boolean {
  const difference = add(a, { top: -b.top, bottom: b.bottom });
  return difference !== undefined && Math.abs(toNumber(difference)) <= Math.min(writtenRounding, 2e-6 * Math.abs(toNumber(b)));
}

function isSameText(a: MathExpression, b: MathExpression): boolean {
  const render = (one: MathExpression) => JSON.stringify(one, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
  return render(a) === render(b);
}
