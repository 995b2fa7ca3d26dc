// Finds the letters that an agent chose, and compares them with the right ones.

import { findAnswer } from '../answer/find-answer.ts';

/** The letters in order, each once; empty if there is no clear choice. */
export function findChoice(text: string, options: readonly string[]): string {
  const found = findAnswer(text);
  const candidates = [found?.from === 'box' || found?.from === 'sentence' ? found.text : undefined, lastLetter(text)];
  for (const candidate of candidates) {
    const letters = candidate === undefined ? '' : toLetters(candidate, options);
    if (letters !== '') return letters;
  }
  return '';
}

/** `B`, `(B)`, `\text{B}`, `B) the text`, `A and C`, or the text of an option. */
export function toLetters(candidate: string, options: readonly string[]): string {
  const clean = candidate
    .replace(/\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}/g, '$1')
    .replace(/[*$\\]/g, '')
    .trim();
  const last = options.length === 0 ? 'Z' : letterOf(options.length - 1);
  const letter = `[A-${last}]`;
  const several = new RegExp(`^\\(?(${letter})\\)?(?:\\s*(?:,|and|&|;)\\s*(?:and\\s+)?\\(?(${letter})\\)?)*[.)]?$`, 'i');
  if (several.test(clean)) return sortLetters(clean.toUpperCase().replace(/AND/g, ' ').match(new RegExp(letter, 'g')) ?? []);
  const [, first] = new RegExp(`^\\(?(${letter})[).:]`, 'i').exec(clean) ?? [];
  if (first !== undefined) return first.toUpperCase();
  const at = options.findIndex((option) => fold(option) === fold(clean));
  return at < 0 ? '' : letterOf(at);
}

export const letterOf = (index: number): string => String.fromCharCode(65 + index);

const fold = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[\s.]+/g, ' ')
    .trim();

const sortLetters = (letters: readonly string[]): string => [...new Set(letters)].sort().join('');

/** A letter alone on the last line, as `B` or `**(B)**`. */
function lastLetter(text: string): string | undefined {
  const line = text.trimEnd().split('\n').at(-1)?.trim() ?? '';
  return /^[*(\s]*[A-Z][)*.\s]*$/i.test(line) ? line.replace(/[*\s]/g, '') : undefined;
}
