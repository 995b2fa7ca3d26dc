// Compares short texts: words without case, articles and punctuation, chemical formulas with their case.

import { toFormulas } from './formula.ts';

const maxLength = 2000;

export function isSameText(given: string, expected: string): boolean {
  const [a, b] = [toFormulas(given), toFormulas(expected)];
  if (a.length > 0 && b.length > 0) return a.some((one) => b.includes(one));
  if (b.length > 0 && /\d|[A-Z].*[A-Z]/s.test(expected)) return false;
  const [one, other] = [foldText(given), foldText(expected)];
  return other !== '' && (one === other || toSingular(one) === toSingular(other));
}

/** The last word without the `s` of its plural. */
const toSingular = (text: string): string => text.replace(/(?<=[a-z]{3}[^\Wsiu])s$/, '');

export function foldText(text: string): string {
  return text
    .slice(0, maxLength)
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '')
    .replace(/\\(?:text|mathrm|textbf)\s?\{([^{}]*)\}/g, '$1')
    .replace(/\^\{?(\w{1,3})\}?/g, '$1')
    .replace(/\b([A-Za-z])_\{?(\w{1,2})\}?/g, '$1$2')
    .toLowerCase()
    .replace(/['’]/g, '')
    .replace(/\b(?:a|an|the)\b/g, ' ')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
