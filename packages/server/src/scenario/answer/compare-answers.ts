// Whether a short answer is the expected one. Both are read the same way; an answer that cannot be read is compared as text.

import { isMultiple, isSameExpression } from './compare-expressions.ts';
import { call, type MathExpression, toExact, valueAt } from './expression.ts';
import { differenceOf, maxAnswerLength, parseAnswer, type ShortAnswer } from './parse-answer.ts';
import { hasSameDimension, parseUnit } from './units.ts';

export function isSameAnswer(given: string, truth: string): boolean {
  if (given.length > maxAnswerLength && given.length > 2 * truth.length) return false;
  if (renderText(given) === renderText(truth)) return renderText(truth) !== '';
  return isSame(parseAnswer(given), parseAnswer(truth));
}

/** Without layout, brackets around all of it, case and a full stop. */
function renderText(text: string): string {
  return text
    .replace(/\\(?:text|mathrm|textbf|mbox|mathbf)\s*\{([^{}]*)\}/g, '$1')
    .replace(/\\(?:left|right|displaystyle)(?![a-zA-Z])|\\[,;!: ]|\$|~/g, '')
    .replace(/\\d?t?frac/g, '\\frac')
    .replace(/\s+/g, '')
    .replace(/[.。]$/, '')
    .replace(/^\((.)\)$|^\{(.*)\}$/, '$1$2')
    .toLowerCase();
}

function isSame(given: ShortAnswer, truth: ShortAnswer): boolean {
  if (given.kind === 'text' || truth.kind === 'text') return false;
  if (given.kind === 'value' && truth.kind === 'value') return isSameValue(given, truth);
  if (given.kind === 'relation' || truth.kind === 'relation') return isSameRelation(given, truth);
  if (given.kind === 'matrix' || truth.kind === 'matrix') return isSameMatrix(given, truth);
  if (given.kind === 'tuple' && truth.kind === 'tuple') return isSameTuple(given, truth);
  return isSameItems(given, truth);
}

type AnswerValue = Extract<ShortAnswer, { kind: 'value' }>;

/** A unit may be left out, but not be another one. */
function isSameValue(given: AnswerValue, truth: AnswerValue): boolean {
  if (given.unit !== undefined && truth.unit !== undefined) {
    const [a, b] = [parseUnit(given.unit), parseUnit(truth.unit)];
    const isSpelledSame = renderText(given.unit) === renderText(truth.unit);
    if (a && b && !isSpelledSame) return hasSameDimension(a, b) && isSameExpression(times(given.value, a.factor / b.factor), truth.value);
    if (a && b) return isSameExpression(given.value, truth.value);
  }
  return isSameExpression(given.value, truth.value) || isSamePercentage(given, truth);
}

/** 50 % is 0.5; where one side has no percent sign, it may also be 50. */
function isSamePercentage(given: AnswerValue, truth: AnswerValue): boolean {
  const [a, b] = [given.value, truth.value].map((one) => (one.kind === 'call' && one.name === 'percent' ? one.args[0] : undefined));
  if (a !== undefined && b === undefined) return isSameExpression(a, truth.value);
  return b !== undefined && a === undefined && isSameExpression(given.value, b);
}

function times(value: MathExpression, factor: number): MathExpression {
  if (factor === 1) return value;
  const text = BigInt(Math.round(factor * 1e12));
  return call('multiply', value, { kind: 'number', value: { top: text, bottom: 10n ** 12n }, isDecimal: true });
}

function isSameMatrix(given: ShortAnswer, truth: ShortAnswer): boolean {
  const [a, b] = [rowsOf(given), rowsOf(truth)];
  if (a === undefined || b === undefined || a.length !== b.length) return false;
  return a.every((row, at) => {
    const other = b[at] ?? [];
    return row.length === other.length && row.every((cell, column) => isSame(cell, other[column] ?? { kind: 'text', text: '' }));
  });
}

/** A tuple is also a vector. */
function rowsOf(answer: ShortAnswer): readonly (readonly ShortAnswer[])[] | undefined {
  if (answer.kind === 'matrix') return answer.rows;
  return answer.kind === 'tuple' ? answer.items.map((item) => [item]) : undefined;
}

type AnswerTuple = Extract<ShortAnswer, { kind: 'tuple' }>;

/** With two items the brackets matter: they are an interval, unless both are a pair. */
function isSameTuple(given: AnswerTuple, truth: AnswerTuple): boolean {
  const isInterval = given.items.length === 2;
  if (isInterval && (given.open !== truth.open || given.close !== truth.close)) return false;
  return (
    given.items.length === truth.items.length &&
    given.items.every((item, at) => isSame(item, truth.items[at] ?? { kind: 'text', text: '' }))
  );
}

const itemsOf = (answer: ShortAnswer): readonly ShortAnswer[] => {
  switch (answer.kind) {
    case 'list':
    case 'set':
    case 'union':
      return answer.items;
    case 'tuple':
      // A list in brackets; in a union, an interval.
      return answer.items.length === 2 ? [answer] : answer.items;
    default:
      return [answer];
  }
};

function isSameItems(given: ShortAnswer, truth: ShortAnswer): boolean {
  if (given.kind === 'tuple' || truth.kind === 'tuple') {
    const [tuple, other] = given.kind === 'tuple' ? [given, truth] : [truth, given];
    if (tuple.kind === 'tuple' && other.kind === 'list') return isSameOrder(tuple.items, other.items);
    if (other.kind !== 'union' && other.kind !== 'set') return false;
  }
  const [a, b] = [dropRepeated(itemsOf(given)), dropRepeated(itemsOf(truth))];
  if (a.length !== b.length) return false;
  const left = [...b];
  return a.every((item) => {
    const at = left.findIndex((other) => isSame(item, other));
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  });
}

const isSameOrder = (a: readonly ShortAnswer[], b: readonly ShortAnswer[]): boolean =>
  a.length === b.length && a.every((item, at) => isSame(item, b[at] ?? { kind: 'text', text: '' }));

function dropRepeated(items: readonly ShortAnswer[]): readonly ShortAnswer[] {
  return items.filter((item, at) => items.findIndex((other) => isSame(item, other)) === at || item.kind === 'text');
}

type Relation = Extract<ShortAnswer, { kind: 'relation' }>;

function isSameRelation(given: ShortAnswer, truth: ShortAnswer): boolean {
  if (given.kind === 'relation' && truth.kind === 'relation' && areSameRelations(given, truth)) return true;
  const [a, b] = [simplify(given), simplify(truth)];
  if (a.kind === 'relation' || b.kind === 'relation') return false;
  return isSame(a, b);
}

/** `x = 5` is 5, and `1 < x \le 2` is the interval (1, 2]. */
function simplify(answer: ShortAnswer): ShortAnswer {
  if (answer.kind !== 'relation') return answer;
  const { sides, marks } = answer;
  const last = sides.at(-1);
  if (marks.every((mark) => mark === '=') && last !== undefined)
    return isName(sides[0]) || marks.length > 1 ? { kind: 'value', value: last } : answer;
  return toInterval(answer) ?? answer;
}

/** A variable, or a function of one such as f(x), which reads as a product. */
function isName(side: MathExpression | undefined): boolean {
  if (side?.kind === 'symbol') return true;
  return side?.kind === 'call' && side.name === 'multiply' && side.args.every((one) => one.kind === 'symbol');
}

const infinity: MathExpression = { kind: 'symbol', name: 'infinity' };
const flipped: Readonly<Record<string, string>> = { '<': '>', '>': '<', '\\le': '\\ge', '\\ge': '\\le' };

function toInterval({ sides, marks }: Relation): ShortAnswer | undefined {
  const at = sides.findIndex((side) => side.kind === 'symbol');
  const [before, after] = [sides[at - 1], sides[at + 1]];
  if (at < 0 || sides.length > 3 || (sides.length === 3 && at !== 1)) return undefined;
  const bounds = [
    ...(before ? [{ mark: flipped[marks[at - 1] ?? ''], value: before }] : []),
    ...(after ? [{ mark: marks[at], value: after }] : []),
  ];
  const lower = bounds.find(({ mark }) => mark === '>' || mark === '\\ge');
  const upper = bounds.find(({ mark }) => mark === '<' || mark === '\\le');
  if (bounds.length !== (lower ? 1 : 0) + (upper ? 1 : 0)) return undefined;
  return {
    kind: 'tuple',
    open: lower?.mark === '\\ge' ? '[' : '(',
    close: upper?.mark === '\\le' ? ']' : ')',
    items: [lower?.value ?? call('negate', infinity), upper?.value ?? infinity].map((value) => ({ kind: 'value', value })),
  };
}

function areSameRelations(given: Relation, truth: Relation): boolean {
  const [a, b] = [toDifference(given), toDifference(truth)];
  if (a === undefined || b === undefined || a.mark !== b.mark) return false;
  return isMultiple(a.difference, b.difference, a.mark === '=' || a.mark === '\\ne' ? undefined : 'positive');
}

/** As `difference < 0`. */
function toDifference({ sides, marks }: Relation): { readonly mark: string; readonly difference: MathExpression } | undefined {
  const [left, right, third] = sides;
  const [mark = ''] = marks;
  if (!left || !right || third) return undefined;
  if (mark === '>' || mark === '\\ge') return { mark: flipped[mark] ?? '', difference: differenceOf(right, left) };
  return { mark, difference: differenceOf(left, right) };
}

/** The real number that an answer is, for comparisons with a tolerance. */
export function toReal(text: string): { readonly value: number; readonly unit?: string } | undefined {
  const read = simplify(parseAnswer(text));
  if (read.kind !== 'value') return undefined;
  const exact = toExact(read.value);
  const { re, im } = exact ? { re: Number(exact.top) / Number(exact.bottom), im: 0 } : valueAt(read.value, new Map());
  if (!Number.isFinite(re) || Math.abs(im) > 1e-9) return undefined;
  return { value: re, ...(read.unit === undefined ? {} : { unit: read.unit }) };
}
