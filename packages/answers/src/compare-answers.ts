// Whether a short answer is the expected one. Both are read the same way; an answer that cannot be read is compared as text. The work is bounded
// for any two texts.

import { type Assignment, hasOneName, isSameName, toAssignments, valuesInOrder, withoutConditions } from './compare/assignments.ts';
import { hasSameZero, isMultiple, isSameExpression, renameArbitrary, roundsTo } from './compare/compare-expressions.ts';
import { isSameUnitValue } from './compare/compare-units.ts';
import { isSameRealSet, toRealSet } from './compare/real-sets.ts';
import { isSameNumeral, isSameTime, toVariants, type Variant } from './compare/variants.ts';
import type { AnswerTuple, AnswerValue, Relation, ShortAnswer } from './expression/answer-kinds.ts';
import { Evaluator, TooMuchWork } from './expression/evaluate.ts';
import { call, differenceOf, type MathExpression, symbolsOf, toDecimal } from './expression/expression.ts';
import { namedFunctions } from './number/functions.ts';
import { toNumber } from './number/real.ts';
import { maxAnswerLength } from './read/normalise.ts';
import { parseAnswer } from './read/parse-answer.ts';
import type { CommaReading } from './read/tokens.ts';
import { foldWords } from './read/words.ts';

/** Answers that have more than one reading are the same if one reading of both is. */
export function isSameAnswer(given: string, truth: string): boolean {
  if (given.length > maxAnswerLength || truth.length > maxAnswerLength) return given.trim() === truth.trim();
  const [a, b] = [foldWords(given), foldWords(truth)];
  if (a === b) return b !== '';
  if (withoutNoun(a) === b || a === withoutNoun(b)) return true;
  const sameNotation = isSameNumeral(given, truth) ?? isSameTime(given, truth);
  if (sameNotation !== undefined) return sameNotation;
  const hasCommas = [given, truth].every((text) => /\d,\d{3}/.test(text));
  const hasLog = /log/.test(given + truth);
  const [as, bs] = [toVariants(given), toVariants(truth)];
  return (
    isSameVariant(as, bs, new Comparer(), 'thousands') ||
    (hasLog && isSameVariant(as, bs, new Comparer('10'), 'thousands')) ||
    (hasCommas && isSameVariant(as, bs, new Comparer(), 'items'))
  );
}

/** `quadrant II` is II; undefined if the name has no noun. */
function withoutNoun(text: string): string | undefined {
  const [, name] =
    /^(?:quadrant|option|choice|case|point|line|plane|figure|graph|statement|type|team|door) ([a-z]|i{1,3}|iv|vi?)$/i.exec(text) ?? [];
  return name === undefined ? undefined : foldWords(name.toUpperCase());
}

function isSameVariant(given: readonly Variant[], truth: readonly Variant[], comparer: Comparer, commas: CommaReading): boolean {
  try {
    if (given.length === 2 && given[1]?.kind === 'rounded' && !isConsistent(given, comparer, commas)) return false;
    const areChoices = [given, truth].every((variants) => variants.some(({ kind }) => kind === 'label'));
    return given.some((a) =>
      truth.some((b) => {
        if (areChoices && a.kind !== 'label') return false;
        if (a.kind !== b.kind && (a.kind === 'label' || b.kind === 'label')) return false;
        if (a.kind === 'label') return foldWords(a.text) === foldWords(b.text);
        return comparer.isSame(parseAnswer(a.text, commas), parseAnswer(b.text, commas), b.kind === 'rounded');
      }),
    );
  } catch (error) {
    if (error instanceof TooMuchWork) return false;
    throw error;
  }
}

/** Both sides of `\approx` have to say the same: two answers are none. */
function isConsistent([exact, rounded]: readonly Variant[], comparer: Comparer, commas: CommaReading): boolean {
  return comparer.isSame(parseAnswer(exact?.text ?? '', commas), parseAnswer(rounded?.text ?? '', commas), true);
}

const maxNames = 3;

class Comparer {
  readonly #evaluator: Evaluator;

  constructor(logBase: 'e' | '10' = 'e') {
    this.#evaluator = new Evaluator(logBase);
  }

  /** Whether they are the same; an expected number that was rounded is also the exact one. */
  isSame(one: ShortAnswer, other: ShortAnswer, isRounded = false): boolean {
    this.#evaluator.spend(5);
    const [given, truth] = [withoutConditions(one, other), withoutConditions(other, one)];
    if (given.kind === 'text' || truth.kind === 'text')
      return given.kind === 'text' && truth.kind === 'text' && given.text === truth.text && truth.text !== '';
    if (given.kind === 'value' && truth.kind === 'value') return this.#isSameValue(given, truth, isRounded);
    if (given.kind === 'residue' || truth.kind === 'residue') return this.#isSameResidue(given, truth);
    if (given.kind === 'ratio' || truth.kind === 'ratio') return this.#isSameRatio(given, truth);
    return this.#isSameRelation(given, truth) || this.#isSameAssignment(given, truth) || this.#isSameStructure(given, truth);
  }

  #isSameValue(given: AnswerValue, truth: AnswerValue, isRounded: boolean): boolean {
    const decimal = toDecimal(truth.value);
    if (isRounded && decimal && roundsTo(given.value, decimal, this.#evaluator)) return true;
    return isSameUnitValue(given, truth, this.#evaluator);
  }

  #isSameResidue(given: ShortAnswer, truth: ShortAnswer): boolean {
    if (given.kind === 'residue' && truth.kind === 'residue') {
      if (!isSameExpression(given.modulus, truth.modulus, this.#evaluator)) return false;
      const steps = this.#evaluator.exact(call('divide', differenceOf(given.value, truth.value), truth.modulus));
      return steps?.bottom === 1n;
    }
    const [residue, other] = given.kind === 'residue' ? [given, truth] : [truth, given];
    const value = toAssignments(other)?.[0]?.value ?? other;
    if (residue.kind !== 'residue' || value.kind !== 'value') return false;
    if (isSameExpression(residue.value, value.value, this.#evaluator)) return true;
    // `17 \bmod 5` is 2.
    const quotient = call('floor', call('divide', residue.value, residue.modulus));
    const rest = call('subtract', residue.value, call('multiply', residue.modulus, quotient));
    return given.kind === 'residue' && isSameExpression(rest, value.value, this.#evaluator);
  }

  /** Two parts are also a fraction. */
  #isSameRatio(given: ShortAnswer, truth: ShortAnswer): boolean {
    const [a, b] = [given, truth].map((one) => {
      if (one.kind === 'ratio') return one.parts;
      if (one.kind !== 'value') return [];
      return one.value.kind === 'call' && ['divide', 'fraction'].includes(one.value.name)
        ? one.value.args
        : [one.value, call('power', one.value, call('subtract', one.value, one.value))];
    }) as [readonly MathExpression[], readonly MathExpression[]];
    const [firstA, firstB] = [a[0], b[0]];
    if (a.length !== b.length || firstA === undefined || firstB === undefined) return false;
    return a.every((part, at) =>
      isSameExpression(call('multiply', part, firstB), call('multiply', b[at] ?? part, firstA), this.#evaluator),
    );
  }

  #isSameRelation(given: ShortAnswer, truth: ShortAnswer): boolean {
    if (given.kind !== 'relation' || truth.kind !== 'relation') return false;
    const [a, b] = [toDifference(given), toDifference(truth)];
    if (a === undefined || b === undefined || a.mark !== b.mark) return false;
    const isEquation = a.mark === '=';
    if (isMultiple(a.difference, b.difference, this.#evaluator, isEquation || a.mark === '\\ne' ? undefined : 'positive')) return true;
    const names = symbolsOf(a.difference, symbolsOf(b.difference)).size;
    return isEquation && names > 1 && names <= maxNames && hasSameZero(a.difference, b.difference, this.#evaluator);
  }

  #isSameAssignment(given: ShortAnswer, truth: ShortAnswer): boolean {
    const [a, b] = [toAssignments(given), toAssignments(truth)];
    if (a && b) {
      if (hasOneName(a) && hasOneName(b))
        return isSameName(a[0]?.name ?? '', b[0]?.name ?? '') && this.#isSameItems(a.map(toPlain), b.map(toPlain), a, b);
      return a.length === b.length && isMatched(a, b, (x, y) => isSameName(x.name, y.name) && this.isSame(x.value, y.value));
    }
    if (a) return this.#isSameValues(a, truth);
    if (b) return this.#isSameValues(b, given);
    return this.#isResultOf(given, truth);
  }

  /** Names and values against values alone. */
  #isSameValues(named: readonly Assignment[], plain: ShortAnswer): boolean {
    const [first] = named;
    if (named.length === 1 && first) return this.isSame(first.value, plain);
    if (hasOneName(named)) return this.#isSameStructure({ kind: 'set', items: named.map(toPlain) }, plain);
    return (plain.kind === 'tuple' || plain.kind === 'list') && this.#isSameOrder(valuesInOrder(named), plain.items);
  }

  /** `x + y = 12` answers a question for 12, and `2 + 3 = 5` one for 5. */
  #isResultOf(given: ShortAnswer, truth: ShortAnswer): boolean {
    if (truth.kind === 'relation' && given.kind === 'value' && isOfFunction(truth)) return this.#isResultOf(truth, given);
    if (given.kind !== 'relation' || truth.kind !== 'value' || given.marks.some((mark) => mark !== '=')) return false;
    const [last, ...others] = given.sides.toReversed();
    if (last === undefined || symbolsOf(truth.value).size > 0) return false;
    const constant = others.filter((side) => symbolsOf(side).size === 0);
    return [last, ...constant].every((side) => this.isSame({ kind: 'value', value: side }, truth));
  }

  #isSameStructure(given: ShortAnswer, truth: ShortAnswer): boolean {
    if (given.kind === 'matrix' || truth.kind === 'matrix') return this.#isSameMatrix(given, truth);
    if (given.kind === 'tuple' && truth.kind === 'tuple') return this.#isSameTuple(given, truth);
    if (given.kind === 'numbers' && truth.kind === 'numbers') return given.name === truth.name;
    if (isPlainItems(given) && isPlainItems(truth)) return this.#isSameItems(itemsOf(given), itemsOf(truth), given, truth);
    const [a, b] = [toRealSet(given, this.#evaluator), toRealSet(truth, this.#evaluator)];
    return a !== undefined && b !== undefined && isSameRealSet(a, b);
  }

  #isSameMatrix(given: ShortAnswer, truth: ShortAnswer): boolean {
    const [a, b] = [rowsOf(given), rowsOf(truth)];
    return a !== undefined && b !== undefined && a.length === b.length && a.every((row, at) => this.#isSameOrder(row, b[at] ?? []));
  }

  /** With two items the brackets matter: they are an interval, unless both are a pair. */
  #isSameTuple(given: AnswerTuple, truth: AnswerTuple): boolean {
    const isInterval = given.items.length === 2;
    if (isInterval && (given.open !== truth.open || given.close !== truth.close)) return false;
    return this.#isSameOrder(given.items, truth.items);
  }

  #isSameOrder(a: readonly ShortAnswer[], b: readonly ShortAnswer[]): boolean {
    return a.length === b.length && a.every((item, at) => this.isSame(item, b[at] ?? { kind: 'text', text: '' }));
  }

  /** As sets; a tuple and a list also in order. */
  #isSameItems(a: readonly ShortAnswer[], b: readonly ShortAnswer[], given: unknown, truth: unknown): boolean {
    if (isTuple(given) || isTuple(truth)) return this.#isSameOrder(a, b);
    const isSame = (x: ShortAnswer, y: ShortAnswer) => this.isSame(x, y);
    const [left, right] = [dropRepeated(a, isSame), dropRepeated(b, isSame)];
    return left.length === right.length && isMatched(left, right, isSame);
  }

  /** The real number that an answer is. */
  toReal(answer: ShortAnswer): { readonly value: number; readonly unit?: string } | undefined {
    const read = toAssignments(answer)?.[0]?.value ?? answer;
    if (read.kind !== 'value') return undefined;
    const value = this.#evaluator.value(read.value, new Map());
    if (value === undefined || value.im.mantissa !== 0n) return undefined;
    return { value: toNumber(value.re), ...(read.unit === undefined ? {} : { unit: read.unit }) };
  }
}

/** `\sin\theta = 3/5`, which answers a question for 3/5. */
function isOfFunction({ sides: [first, last, more], marks }: Relation): boolean {
  const isCall = first?.kind === 'call' && namedFunctions.has(first.name) && first.args.every((one) => one.kind === 'symbol');
  return isCall && last !== undefined && more === undefined && marks[0] === '=' && symbolsOf(last).size === 0;
}

const toPlain = ({ value }: Assignment): ShortAnswer => value;
const isTuple = (answer: unknown): boolean => typeof answer === 'object' && answer !== null && 'kind' in answer && answer.kind === 'tuple';

/** A tuple is also a vector. */
function rowsOf(answer: ShortAnswer): readonly (readonly ShortAnswer[])[] | undefined {
  if (answer.kind === 'matrix') return answer.rows;
  return answer.kind === 'tuple' ? answer.items.map((item) => [item]) : undefined;
}

/** What is compared item by item: no relations, intervals or unions. */
function isPlainItems(answer: ShortAnswer): boolean {
  if (answer.kind === 'tuple') return answer.items.length !== 2;
  if (answer.kind === 'set' || answer.kind === 'list') return !answer.items.some(({ kind }) => kind === 'relation');
  return answer.kind === 'value';
}

const itemsOf = (answer: ShortAnswer): readonly ShortAnswer[] =>
  answer.kind === 'list' || answer.kind === 'set' || answer.kind === 'tuple' ? answer.items : [answer];

function isMatched<T>(a: readonly T[], b: readonly T[], isSame: (x: T, y: T) => boolean): boolean {
  const left = [...b];
  return a.every((item) => {
    const at = left.findIndex((other) => isSame(item, other));
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  });
}

function dropRepeated(items: readonly ShortAnswer[], isSame: (x: ShortAnswer, y: ShortAnswer) => boolean): readonly ShortAnswer[] {
  const kept: ShortAnswer[] = [];
  for (const item of items) if (!kept.some((other) => isSame(item, other))) kept.push(item);
  return kept;
}

const flipped: Readonly<Record<string, string>> = { '>': '<', '\\ge': '\\le' };

/** As `difference < 0`. */
function toDifference({ sides, marks }: Relation): { readonly mark: string; readonly difference: MathExpression } | undefined {
  const [left, right, third] = sides;
  const [mark = ''] = marks;
  if (!left || !right || third) return undefined;
  const other = flipped[mark];
  return other === undefined
    ? { mark, difference: differenceOf(left, renameArbitrary(right)) }
    : { mark: other, difference: differenceOf(right, left) };
}

/** The real number that an answer is, for comparisons with a tolerance. */
export function toReal(text: string): { readonly value: number; readonly unit?: string } | undefined {
  try {
    return new Comparer().toReal(parseAnswer(text));
  } catch (error) {
    if (error instanceof TooMuchWork) return undefined;
    throw error;
  }
}
