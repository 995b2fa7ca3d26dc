// Compares a number with its unit against the expected one, within a tolerance.

import { findAnswer, hasSameDimension, parseUnit, toReal, withPowers } from '@millrace/answers';

interface QuantityRule {
  /** Of the expected value. */
  readonly relative: number;
  /** In the unit of the expected value. */
  readonly absolute: number;
  /** Whether an answer without a unit is wrong. Another unit that cannot be converted is always wrong. */
  readonly isUnitRequired: boolean;
}

const maxLength = 1000;

export function isSameQuantity(given: string, expected: string, rule: QuantityRule): boolean {
  const [a, b] = [readQuantity(given), readQuantity(expected)];
  if (a === undefined || b === undefined || (rule.isUnitRequired && a.unit === undefined && b.unit !== undefined)) return false;
  const limit = Math.max(rule.absolute, rule.relative * Math.abs(b.value), roundedZero(a, b)) + 1e-12 * Math.abs(b.value);
  return valuesIn(b, a).some((value) => Math.abs(value - b.value) <= limit);
}

/** The zero of a scale is often rounded: 273 K is 0 °C. */
function roundedZero({ unit = '' }: Quantity, { unit: other = '' }: Quantity): number {
  const [from, to] = [temperatureOf(unit), temperatureOf(other)];
  return from && to && from.zero !== to.zero ? 0.2 / to.scale : 0;
}

interface Quantity {
  readonly value: number;
  readonly unit?: string;
  /** A difference of temperatures, not a temperature. */
  readonly isDifference?: boolean;
  /** Written with π, so that without a unit it may be an angle. */
  readonly hasPi?: boolean;
}

const number =
  '[-+]?(?:\\d{1,3}(?:,\\d{3})+(?!\\d)|\\d+)?(?:\\.\\d+)?(?:(?<=\\d)[eE][-+]?\\d{1,3}|(?<=\\d) ?(?:\\\\times|\\\\cdot|×|·|x|\\*) ?10 ?\\^ ?(?:\\{ ?[-+]?\\d{1,3} ?\\}|[-+]?\\d{1,3}))?';
const head = new RegExp(`^(?:approximately|about|roughly|≈|~|\\\\approx|\\\\sim)? ?(${number})`);

/** A number, then anything that is a unit: also `9.8 kg m s^{-2}` and `3 \times 10^8 \, \mathrm{m/s}`. */
export function readQuantity(text: string): Quantity | undefined {
  if (text.length > maxLength) return undefined;
  const marks = { ...(/\\Delta|Δ/.test(text) ? { isDifference: true } : {}), ...(/\\pi|π/.test(text) ? { hasPi: true } : {}) };
  const clean = withPowers(text)
    .replace(/^[^=]*=\s*(?=[-+\d\\.(])/, '')
    .replace(/^(?:[Tt]he|[Ii]ts?) [a-z ]{1,60}(?: is| was| of| equals) (?=[-+~≈\d]|about|approximately)/, '')
    .replace(/^(?:[a-zA-Z]|\\[a-z]+)(?:_\w)?\s?(?:\\approx|\\simeq|≈)\s?/, '')
    .replace(/[−–]/g, '-')
    .replace(/\\[,;!: ]|[\s~$]/g, ' ')
    .replace(/ +/g, ' ')
    .trim()
    .replace(/\.$/, '');
  const [whole = '', digits = ''] = head.exec(clean) ?? [];
  const rest = clean.slice(whole.length).trim();
  if (/\d/.test(digits)) {
    const value = toNumber(digits);
    if (rest === '') return { value, ...marks };
    if (parseUnit(rest) !== undefined) return { value, unit: rest, ...marks };
  }
  const read = toReal(clean);
  if (read !== undefined) return { ...read, ...marks };
  // A unit that is not known is only itself.
  const isUnit = /^ ?(?:\\(?:text|mathrm)| [a-zA-Z])[a-zA-Z{}\\/^() \d.-]{0,40}$/.test(clean.slice(whole.trimEnd().length));
  const isSeveral = /^ ?(?:\\text ?\{ ?)?(?:and|or|to)\b/.test(rest);
  return /\d/.test(digits) && isUnit && !isSeveral ? { value: toNumber(digits), unit: rest, ...marks } : undefined;
}

function toNumber(text: string): number {
  const plain = text.replace(/,/g, '').replace(/ ?(?:\\times|\\cdot|×|·|x|\*) ?10 ?\^ ?\{? ?([-+]?\d+) ?\}?/, 'e$1');
  return Number(plain);
}

/** The given value in the unit of the expected one, in each way that it can be read; none if the units do not fit. */
function valuesIn(expected: Quantity, given: Quantity): readonly number[] {
  const [a, b] = [given.unit, expected.unit].map((unit) => (unit === undefined ? undefined : parseUnit(unit)));
  if (given.unit !== undefined && expected.unit !== undefined) {
    if (!a || !b) return fold(given.unit) === fold(expected.unit) ? [given.value] : [];
    const [wide, other] = [withWideSlash(given), withWideSlash(expected)];
    if (!hasSameDimension(a, b) && (wide || other)) return valuesIn(other ?? expected, wide ?? given);
    if (!hasSameDimension(a, b)) return [];
    const [from, to] = [temperatureOf(given.unit), temperatureOf(expected.unit)];
    if (from && to && !given.isDifference && !expected.isDifference) return [(given.value * from.scale + from.zero - to.zero) / to.scale];
    return [(given.value * a.factor) / b.factor];
  }
  // Percentages and angles are numbers: without a unit they may be in the other form.
  const isNumber = (unit: typeof a) => unit?.dimension.every((one) => one === 0);
  if (a && isNumber(a)) return [given.value, given.value * a.factor];
  if (b && isNumber(b) && (given.hasPi || /%|percent/.test(expected.unit ?? ''))) return [given.value, given.value / b.factor];
  return [given.value];
}

/** `J/mol·K` is also meant as `J/(mol·K)`. */
function withWideSlash(quantity: Quantity): Quantity | undefined {
  const [, top, bottom] = /^([^/()]{1,40})\/([^/()]{1,40})$/.exec(quantity.unit ?? '') ?? [];
  return bottom !== undefined && /[·⋅*\s]|\\cdot|\\,|\w°/.test(bottom.trim()) ? { ...quantity, unit: `${top}/(${bottom})` } : undefined;
}

const fold = (unit: string): string => unit.replace(/\s/g, '');

/** Kelvin from a temperature in this unit. */
function temperatureOf(unit: string): { readonly scale: number; readonly zero: number } | undefined {
  const name = unit.replace(/\\(?:text|mathrm|degree)|[{}^\s.]/g, '').replace(/\\circ|deg(?:rees?)?/, '°');
  if (/^(?:K|kelvins?)$/.test(name)) return { scale: 1, zero: 0 };
  if (/^(?:°C|℃|°?[cC]elsius)$/.test(name)) return { scale: 1, zero: 273.15 };
  return /^(?:°F|℉|°?[fF]ahrenheit)$/.test(name) ? { scale: 5 / 9, zero: 459.67 * (5 / 9) } : undefined;
}

const maxUnitWords = 4;

/** The answer of a text; a number that stands alone is taken with the unit after it. */
export function findQuantity(text: string): string | undefined {
  const found = findAnswer(text);
  if (found?.from !== 'number') return found?.text;
  const end = text.slice(-10_000);
  let last: RegExpExecArray | undefined;
  for (const match of end.matchAll(new RegExp(`(?<![\\w.^{])(?=[-+.]?\\d)${number}`, 'g'))) last = match;
  if (last === undefined) return found.text;
  const words = end
    .slice(last.index + last[0].length, last.index + last[0].length + 80)
    .trimEnd()
    .replace(/[.,;:!?]$/, '');
  const parts = words.trimStart().split(/ |\n/).slice(0, maxUnitWords);
  for (let count = parts.length; count > 0; count -= 1) {
    const unit = parts
      .slice(0, count)
      .join(' ')
      .replace(/[.,;:!?]$/, '');
    if (parseUnit(unit) !== undefined) return `${last[0]} ${unit}`;
  }
  return last[0];
}
