// Sets of real numbers as intervals: `x > 2`, `(2, \infty)`, `\mathbb{R} \setminus \{0\}` and their unions are compared by what they hold.

import type { Relation, ShortAnswer } from '../expression/answer-kinds.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import { call, differenceOf, infinity, type MathExpression, symbolsOf } from '../expression/expression.ts';
import * as complex from '../number/complex.ts';
import { isNegative, isZero, minus, NoValue, negate, over, plus, type Real } from '../number/real.ts';

/** An end is a number, or beyond all of them. */
type End = Real | 'low' | 'high';

interface Interval {
  readonly from: End;
  readonly to: End;
  readonly hasFrom: boolean;
  readonly hasTo: boolean;
}

interface RealSet {
  readonly intervals: readonly Interval[];
  /** The variable that it is about, if it has one. */
  readonly name?: string;
}

const maxIntervals = 50;
const everything: Interval = { from: 'low', to: 'high', hasFrom: false, hasTo: false };

/** Undefined if it is no set of real numbers. */
export function toRealSet(answer: ShortAnswer, evaluator: Evaluator): RealSet | undefined {
  try {
    const set = read(answer, evaluator);
    return set && set.intervals.length <= maxIntervals ? { ...set, intervals: merge(set.intervals) } : undefined;
  } catch (error) {
    if (error instanceof NoValue) return undefined;
    throw error;
  }
}

function read(answer: ShortAnswer, evaluator: Evaluator): RealSet | undefined {
  evaluator.spend(20);
  switch (answer.kind) {
    case 'numbers':
      return answer.name === 'R' ? { intervals: [everything] } : undefined;
    case 'tuple':
      return toInterval(answer, evaluator);
    case 'set':
      return toPoints(answer.items, evaluator);
    case 'union':
      return unite(answer.items.map((item) => read(item, evaluator)));
    case 'intersection':
      return intersect(answer.items.map((item) => read(item, evaluator)));
    case 'difference': {
      const [whole, without] = [read(answer.whole, evaluator), read(answer.without, evaluator)];
      return whole && without && intersect([whole, { intervals: complementOf(without.intervals) }]);
    }
    case 'relation':
      return fromRelation(answer, evaluator);
    case 'list': {
      if (!answer.items.every(({ kind }) => kind === 'relation' || kind === 'tuple')) return undefined;
      const sets = answer.items.map((item) => read(item, evaluator));
      const both = answer.joined === 'or' || answer.items[0]?.kind === 'tuple' ? undefined : intersect(sets);
      return both && (both.intervals.length > 0 || answer.joined === 'and') ? both : unite(sets);
    }
    default:
      return undefined;
  }
}

function endOf(value: MathExpression, evaluator: Evaluator): End {
  if (value.kind === 'symbol' && value.name === 'infinity') return 'high';
  const [inner] = value.kind === 'call' && value.name === 'negate' ? value.args : [];
  if (inner?.kind === 'symbol' && inner.name === 'infinity') return 'low';
  const number = evaluator.value(value, new Map());
  if (number === undefined || !complex.isReal(number)) throw new NoValue('no end');
  return number.re;
}

function toInterval({ items, open, close }: Extract<ShortAnswer, { kind: 'tuple' }>, evaluator: Evaluator): RealSet | undefined {
  const [from, to] = items;
  if (items.length !== 2 || from?.kind !== 'value' || to?.kind !== 'value') return undefined;
  const [low, high] = [endOf(from.value, evaluator), endOf(to.value, evaluator)];
  const one = { from: low, to: high, hasFrom: open === '[' && low !== 'low', hasTo: close === ']' && high !== 'high' };
  return order(one.from, one.to) < 0 ? { intervals: [one] } : undefined;
}

function toPoints(items: readonly ShortAnswer[], evaluator: Evaluator): RealSet | undefined {
  const intervals = items.map((item) => {
    if (item.kind !== 'value') throw new NoValue('no number');
    const end = endOf(item.value, evaluator);
    return { from: end, to: end, hasFrom: true, hasTo: true };
  });
  return { intervals };
}

const flipped: Readonly<Record<string, string>> = { '<': '>', '>': '<', '\\le': '\\ge', '\\ge': '\\le', '\\ne': '\\ne' };

/** `1 < x \le 2`, `2x + 1 > 5`, `|x| < 2`: whatever is linear in the only name, or its absolute value. */
function fromRelation({ sides, marks }: Relation, evaluator: Evaluator): RealSet | undefined {
  const names = sides.reduce((found, side) => symbolsOf(side, found), new Set<string>());
  const [name] = names;
  if (names.size !== 1 || name === undefined || marks.every((mark) => mark === '=')) return undefined;
  const sets = marks.map((mark, at) => solve(mark, [sides[at] ?? infinity, sides[at + 1] ?? infinity], { name, evaluator }));
  return { ...(intersect(sets) ?? { intervals: [] }), name };
}

interface OneName {
  readonly name: string;
  readonly evaluator: Evaluator;
}

function solve(mark: string, [left, right]: readonly [MathExpression, MathExpression], solving: OneName): RealSet {
  const flip = flipped[mark];
  if (right.kind === 'call' && right.name === 'abs' && flip !== undefined) return solve(flip, [right, left], solving);
  const [inner] = left.kind === 'call' && left.name === 'abs' ? left.args : [];
  if (inner !== undefined && flip !== undefined) {
    const both = [solve(mark, [inner, right], solving), solve(flip, [inner, call('negate', right)], solving)];
    const joined = mark === '>' || mark === '\\ge' ? unite(both) : intersect(both);
    return joined ?? { intervals: [] };
  }
  if (right.kind === 'symbol' && left.kind !== 'symbol') return half(flip ?? mark, endOf(left, solving.evaluator));
  if (left.kind === 'symbol') return half(mark, endOf(right, solving.evaluator));
  return solveLinear(mark, differenceOf(left, right), solving);
}

function solveLinear(mark: string, difference: MathExpression, { name, evaluator }: OneName): RealSet {
  const at = (x: number): Real => {
    const value = evaluator.value(difference, new Map([[name, complex.fromInteger(x)]]));
    if (value === undefined || !complex.isReal(value)) throw new NoValue('not real');
    return value.re;
  };
  const [zero, one, two] = [at(0), at(1), at(-2)];
  const slope = minus(one, zero);
  if (isZero(slope) || !isZero(plus(minus(two, zero), plus(slope, slope)))) throw new NoValue('not linear');
  const root = over(negate(zero), slope);
  return half(isNegative(slope) ? (flipped[mark] ?? mark) : mark, root);
}

function half(mark: string | undefined, end: End): RealSet {
  switch (mark) {
    case '<':
    case '\\le':
      return { intervals: [{ ...everything, to: end, hasTo: mark === '\\le' }] };
    case '>':
    case '\\ge':
      return { intervals: [{ ...everything, from: end, hasFrom: mark === '\\ge' }] };
    case '\\ne':
      return { intervals: complementOf([{ from: end, to: end, hasFrom: true, hasTo: true }]) };
    case '=':
      return { intervals: [{ from: end, to: end, hasFrom: true, hasTo: true }] };
    default:
      throw new NoValue('no inequality');
  }
}

function order(a: End, b: End): number {
  if (a === b) return 0;
  if (a === 'low' || b === 'high') return -1;
  if (a === 'high' || b === 'low') return 1;
  const difference = minus(a, b);
  if (isZero(difference)) return 0;
  return isNegative(difference) ? -1 : 1;
}

const isEmpty = ({ from, to, hasFrom, hasTo }: Interval): boolean => order(from, to) > 0 || (order(from, to) === 0 && !(hasFrom && hasTo));

function nameOf(sets: readonly RealSet[]): { readonly name?: string } {
  const names = [...new Set(sets.flatMap(({ name }) => (name === undefined ? [] : [name])))];
  if (names.length > 1) throw new NoValue('two names');
  return names[0] === undefined ? {} : { name: names[0] };
}

function unite(sets: readonly (RealSet | undefined)[]): RealSet | undefined {
  const known = sets.filter((set) => set !== undefined);
  if (known.length !== sets.length) return undefined;
  return { intervals: merge(known.flatMap(({ intervals }) => intervals)), ...nameOf(known) };
}

/** In order, and joined where they touch. */
function merge(intervals: readonly Interval[]): readonly Interval[] {
  const sorted = intervals
    .filter((one) => !isEmpty(one))
    .toSorted((a, b) => order(a.from, b.from) || Number(b.hasFrom) - Number(a.hasFrom));
  const merged: Interval[] = [];
  for (const one of sorted) {
    const last = merged.at(-1);
    const gap = last ? order(last.to, one.from) : -1;
    if (!last || gap < 0 || (gap === 0 && !last.hasTo && !one.hasFrom)) merged.push(one);
    else if (order(last.to, one.to) < 0) merged[merged.length - 1] = { ...last, to: one.to, hasTo: one.hasTo };
    else if (order(last.to, one.to) === 0) merged[merged.length - 1] = { ...last, hasTo: last.hasTo || one.hasTo };
  }
  return merged;
}

function complementOf(intervals: readonly Interval[]): readonly Interval[] {
  const gaps: Interval[] = [];
  let [from, hasFrom]: [End, boolean] = ['low', false];
  for (const one of merge(intervals)) {
    gaps.push({ from, hasFrom, to: one.from, hasTo: !one.hasFrom && one.from !== 'low' });
    [from, hasFrom] = [one.to, !one.hasTo && one.to !== 'high'];
  }
  gaps.push({ from, hasFrom, to: 'high', hasTo: false });
  return gaps.filter((one) => !isEmpty(one) && one.from !== 'high' && one.to !== 'low');
}

function intersect(sets: readonly (RealSet | undefined)[]): RealSet | undefined {
  const known = sets.filter((set) => set !== undefined);
  if (known.length !== sets.length) return undefined;
  const outside = known.flatMap(({ intervals }) => complementOf(intervals));
  return { intervals: complementOf(outside), ...nameOf(known) };
}

export function isSameRealSet(a: RealSet, b: RealSet): boolean {
  if (a.name !== undefined && b.name !== undefined && a.name !== b.name) return false;
  if (a.intervals.length !== b.intervals.length) return false;
  return a.intervals.every((one, at) => {
    const other = b.intervals[at];
    const isSameEnds = other && order(one.from, other.from) === 0 && order(one.to, other.to) === 0;
    return isSameEnds && one.hasFrom === other.hasFrom && one.hasTo === other.hasTo;
  });
}
