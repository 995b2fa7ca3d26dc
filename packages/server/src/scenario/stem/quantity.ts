// Compares a number with its unit against the expected one, within a tolerance.

import { toReal } from '../answer/compare-answers.ts';
import { hasSameDimension, parseUnit } from '../answer/read/units.ts';

export interface QuantityRule {
  /** Of the expected value. */
  readonly relative: number;
  /** In the unit of the expected value. */
  readonly absolute: number;
  /** Whether an answer without a unit is wrong. Another unit that cannot be converted is always wrong. */
  readonly isUnitRequired: boolean;
}

export function isSameQuantity(given: string, expected: string, rule: QuantityRule): boolean {
  const [a, b] = [readQuantity(given), readQuantity(expected)];
  if (a === undefined || b === undefined) return false;
  const factor = factorOf(a.unit, b.unit, rule.isUnitRequired);
  if (factor === undefined) return false;
  return Math.abs(a.value * factor - b.value) <= Math.max(rule.absolute, rule.relative * Math.abs(b.value)) + 1e-12 * Math.abs(b.value);
}

export interface Quantity {
  readonly value: number;
  readonly unit?: string;
}

/** A number, then anything that is a unit: also `9.8 kg m s^{-2}` and `3 \times 10^8 \, \mathrm{m/s}`. */
export function readQuantity(text: string): Quantity | undefined {
  const clean = text
    .replace(/^[^=]*=\s*(?=[-+\d\\.(])/, '')
    .replace(/[−–]/g, '-')
    .replace(/\.\s*$/, '')
    .trim();
  const head =
    /^(?:approximately|about|≈|~|\\approx)?\s*([-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?:\.\d+)?(?:\s*(?:\\times|\\cdot|×|x|\*)\s*10\s*\^\s*(?:\{[-+]?\d+\}|[-+]?\d+)|[eE][-+]?\d+)?)/.exec(
      clean,
    );
  const [whole = '', number = ''] = head ?? [];
  const rest = clean.slice(whole.length).trim();
  if (/\d/.test(number)) {
    const value = toNumber(number);
    if (rest === '') return { value };
    if (parseUnit(rest) !== undefined) return { value, unit: rest };
  }
  return toReal(clean);
}

function toNumber(text: string): number {
  const plain = text.replace(/,/g, '').replace(/\s*(?:\\times|\\cdot|×|x|\*)\s*10\s*\^\s*\{?([-+]?\d+)\}?/, 'e$1');
  return Number(plain.startsWith('e') ? `1${plain}` : plain);
}

/** What the given value is multiplied by; undefined if the units do not fit. */
function factorOf(given: string | undefined, expected: string | undefined, isRequired: boolean): number | undefined {
  if (expected === undefined) return 1;
  if (given === undefined) return isRequired ? undefined : 1;
  const [a, b] = [parseUnit(given), parseUnit(expected)];
  if (a === undefined || b === undefined) return given.replace(/\s/g, '') === expected.replace(/\s/g, '') ? 1 : undefined;
  return hasSameDimension(a, b) ? a.factor / b.factor : undefined;
}
