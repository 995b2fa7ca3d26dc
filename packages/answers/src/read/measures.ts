// Measured values that are more than a number and a unit: a list with units, as `3 cm, 4 cm`, and one value in several units, as
// `3 hours 20 minutes`.

import { hasSameDimension, parseUnit } from './units.ts';
import { splitUnit } from './words.ts';

const maxParts = 20;
const between = /,|;|\\text ?\{ ?,? ?(?:and|or) ?\}|(?<= )(?:and|or)(?= )/;

/** The items of a list in which each has its unit; undefined if it is none. */
export function splitMeasures(text: string): readonly string[] | undefined {
  if (/[()[\]]|\\\{/.test(text)) return undefined;
  const parts = text.split(between).map((part) => part.trim());
  const isList = parts.length > 1 && parts.length <= maxParts && parts.every((part) => splitUnit(part).unit !== undefined);
  return isList ? parts : undefined;
}

/** `5 feet 6 inches` as `(5*12+6) inches`: each unit is a whole number of the next one, and the number of the next one is less than that. */
export function joinCompound(text: string): string | undefined {
  const words = text
    .replace(/\\(?:text|mathrm|mbox) ?\{([^{}]*)\}/g, ' $1 ')
    .replace(/,|\band\b/g, ' ')
    .replace(/(?<=\d)(?=[a-zA-Z])/g, ' ')
    .trim()
    .split(/\s+/);
  if (words.length < 4 || words.length > 8 || words.length % 2 === 1) return undefined;
  let sum = '';
  let last = '';
  for (let at = 0; at < words.length; at += 2) {
    const [number = '', unit = ''] = [words[at], words[at + 1]];
    const steps = last === '' ? 1 : stepsBetween(last, unit);
    if (!/^\d{1,9}(?:\.\d{1,9})?$/.test(number) || steps === undefined || (last !== '' && Number(number) >= steps)) return undefined;
    sum = last === '' ? number : `(${sum}*${steps}+${number})`;
    last = unit;
  }
  return `${sum} ${last}`;
}

function stepsBetween(large: string, small: string): number | undefined {
  const [a, b] = [parseUnit(large), parseUnit(small)];
  if (!a || !b || !hasSameDimension(a, b)) return undefined;
  const steps = Math.round(a.factor / b.factor);
  return steps > 1 && Math.abs(a.factor / b.factor - steps) < 1e-9 * steps ? steps : undefined;
}
