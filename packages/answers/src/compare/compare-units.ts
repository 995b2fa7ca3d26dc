// Values with units and percentages. A unit may be left out, but not be another one.

import type { AnswerValue } from '../expression/answer-kinds.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import { call, hasCall, hasSymbol, type MathExpression } from '../expression/expression.ts';
import { toNumber } from '../number/real.ts';
import { hasSameDimension, parseUnit } from '../read/units.ts';
import { foldWords } from '../read/words.ts';
import { isSameExpression, renameArbitrary } from './compare-expressions.ts';

/** Factors of units are doubles. */
const tolerance = 1e-9;

export function isSameUnitValue(one: AnswerValue, other: AnswerValue, evaluator: Evaluator): boolean {
  const money = [one, other].map(({ unit = '' }) => (isDollars(unit) ? 'dollars' : isCents(unit) ? 'cents' : undefined));
  if (money[0] !== undefined && money[1] !== undefined && money[0] !== money[1]) {
    const [a, b] = [one, other].map(({ value, unit = '' }) => (isCents(unit) ? call('percent', value) : value));
    return a !== undefined && b !== undefined && isSameExpression(a, b, evaluator);
  }
  return isSameInUnits(one, other, evaluator);
}

const isDollars = (unit: string): boolean => /^(?:US )?dollars?$|^USD$/i.test(unit);
const isCents = (unit: string): boolean => /^cents?$/i.test(unit);

function isSameInUnits(given: AnswerValue, truth: AnswerValue, evaluator: Evaluator): boolean {
  const isSame = isSameExpression(renameArbitrary(given.value), renameArbitrary(truth.value), evaluator);
  if (given.unit === undefined || truth.unit === undefined)
    return isSame || isSamePercentage(given, truth, evaluator) || isSameAngle(given, truth, evaluator);
  if (foldUnit(given.unit) === foldUnit(truth.unit)) return isSame;
  if (isHalfOfDay(given.unit) && isHalfOfDay(truth.unit)) return false;
  const [a, b] = [parseUnit(given.unit), parseUnit(truth.unit)];
  if (!a || !b) return isSame;
  if (!hasSameDimension(a, b)) return false;
  if (a.factor === b.factor) return isSame;
  const [x, y] = [given.value, truth.value].map((one) => evaluator.value(one, new Map()));
  if (!x || !y) return false;
  const [left, right] = [toNumber(x.re) * a.factor, toNumber(y.re) * b.factor];
  return Math.abs(left - right) <= tolerance * Math.abs(right);
}

const foldUnit = (unit: string): string => foldWords(unit).replace(/\s/g, '');
const isHalfOfDay = (unit: string): boolean => /^[ap]\.?m\.?$/i.test(unit);

/** 50 % is 0.5; where one side has no percent sign, it may also be 50. */
function isSamePercentage(given: AnswerValue, truth: AnswerValue, evaluator: Evaluator): boolean {
  const [a, b] = [percentOf(given), percentOf(truth)];
  if ((a === undefined) === (b === undefined)) return a !== undefined && b !== undefined && isSameExpression(a, b, evaluator);
  const [percent, plain] = [a ?? b, a === undefined ? given.value : truth.value];
  if (percent === undefined) return false;
  return isSameExpression(percent, plain, evaluator) || isSameExpression(call('percent', percent), plain, evaluator);
}

function percentOf({ value, unit }: AnswerValue): MathExpression | undefined {
  if (unit !== undefined && /^(?:per ?cent|cents?)$/i.test(unit)) return value;
  return value.kind === 'call' && value.name === 'percent' ? value.args[0] : undefined;
}

const angles: ReadonlySet<string> = new Set(['arcsin', 'arccos', 'arctan', 'arccot']);

/** 60° is π/3. */
function isSameAngle(given: AnswerValue, truth: AnswerValue, evaluator: Evaluator): boolean {
  const [degrees, radians] = given.unit === undefined ? [truth, given] : [given, truth];
  if (
    degrees.unit === undefined ||
    !/^(?:\^? ?\{? ?\\circ ?\}?|\\degree|degrees?)$/.test(degrees.unit) ||
    !(hasSymbol(radians.value, 'pi') || hasCall(radians.value, angles))
  )
    return false;
  return isSameExpression(call('degrees', degrees.value), radians.value, evaluator);
}
