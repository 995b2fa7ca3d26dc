// Finds the letters that an agent chose, and compares them with the right ones.

import { findAnswer } from '@millrace/answers';
import { foldText } from './short-text.ts';

const maxTextLength = 1 << 17;
const maxCandidateLength = 300;

/** The letters in order, each once; empty if there is no clear choice. */
export function findChoice(text: string, options: readonly string[]): string {
  const end = text.slice(-maxTextLength);
  const found = findAnswer(text);
  if (found?.from === 'unread') return '';
  const whole = end.length <= maxCandidateLength ? foldText(end) : '';
  const chosen = whole.length > 1 ? options.findIndex((option) => foldText(option) === whole) : -1;
  if (chosen >= 0) return letterOf(chosen);
  const candidates = [found?.from === 'box' ? found.text : undefined, lastAnnounced(end), lastLine(end, options)];
  for (const candidate of candidates) {
    const letters = candidate === undefined ? '' : toLetters(candidate.slice(0, maxCandidateLength), options);
    if (letters !== '') return letters;
  }
  return '';
}

/** `B`, `(B)`, `\text{B}`, `B) the text`, `A and C`, `B because`, or the text of an option. */
function toLetters(candidate: string, options: readonly string[]): string {
  const clean = candidate
    .replace(/\\(?:text|textbf|mathrm|mathbf)\s?\{([^{}]*)\}/g, '$1')
    .replace(/[*$\\]/g, '')
    .trim();
  // One letter is the name of an option, also where the text of an option is a letter.
  const isLetter = /^\(?[A-Z][).:]{0,2}$/.test(clean) || clean.length < 2;
  const at = isLetter ? -1 : options.findIndex((option) => foldText(option) === foldText(clean));
  if (at >= 0) return letterOf(at);
  const last = options.length === 0 ? 'Z' : letterOf(options.length - 1);
  return lettersIn(clean, `[A-${last}]`);
}

const filler =
  /^(?:(?:the|both|only|option|options|choice|choices|answer|answers|letter|letters|therefore|thus|hence|clearly|simply|indeed|probably|most|likely)\b[\s:,]{0,3}){0,4}/i;

function lettersIn(text: string, letter: string): string {
  const positive = text.replace(/,? {0,2}\bnot {1,2}(?:(?:option|choice) )?\(?[A-Z]\)?(?![a-zA-Z])(?: {0,2},? {0,2}but)?/g, '').trim();
  if (positive === '') return '';
  const body = positive.replace(filler, '');
  const one = `\\(?${letter}\\)?`;
  const between = '(?: ?[,;&/] ?(?:and )?| and )';
  const list = new RegExp(`^(?:${one}${between}){0,25}${one}(?![a-zA-Z]|['’])`, body === positive && body.length > 3 ? '' : 'i').exec(
    body,
  )?.[0];
  const joined = new RegExp(`^${letter}{2,26}$`).test(body) ? body : undefined;
  const found = joined ?? list;
  if (found === undefined) return '';
  const rest = body.slice(found.length);
  if (/^ ?or\b/i.test(rest) || /^,? or\b/i.test(rest)) return '';
  // `A` before a word is an article, unless it goes on as a reason.
  if (found === 'A' && /^ [a-z]/.test(rest) && !/^ (?:because|since|as|which|with|is|for|and|due)\b/.test(rest)) return '';
  return sortLetters(found.toUpperCase().replace(/AND/g, ' ').match(/[A-Z]/g) ?? []);
}

export const letterOf = (index: number): string => String.fromCharCode(65 + index);

const sortLetters = (letters: readonly string[]): string => [...new Set(letters)].sort().join('');

const before =
  /\b(?:answers?|choice|option|selection|(?:correct|right|best) (?:choices|options))(?:\*\*)? ?(?:is|are|:|=|(?:would|must|should|will) be)|\b(?:i|we)(?: would| will|'ll)? (?:choose|pick|select|go with|answer)\b|####/gi;
const after = /(?<![a-zA-Z])\(?([A-Z])\)?(?:\*\*)? is (?:the )?(?:correct|right|best|true)(?: (?:one|answer|choice|option))?(?![a-z])/g;

/** What the last announcement announces. */
function lastAnnounced(text: string): string | undefined {
  let found: { readonly at: number; readonly text: string } | undefined;
  for (const match of text.matchAll(before)) {
    const start = match.index + match[0].length;
    const [line = ''] = text
      .slice(start, start + maxCandidateLength)
      .trimStart()
      .replace(/^[:*\s]{1,10}/, '')
      .split(/\n|\.(?=\s|$)/, 1);
    if (line !== '') found = { at: match.index, text: line };
  }
  for (const match of text.matchAll(after))
    if (found === undefined || match.index > found.at) found = { at: match.index, text: match[1] ?? '' };
  return found?.text;
}

/** A letter alone on the last line, as `B`, `**(B)**` or `So: B`, or with the text of its option. */
function lastLine(text: string, options: readonly string[]): string | undefined {
  const line = text.slice(-maxCandidateLength).trimEnd().split('\n').at(-1)?.trim() ?? '';
  const [, end] = /(?:^|: ?|\*\*|^(?:[Ss]o |[Tt]hus |[Hh]ence )?[Ii]t(?: is|['’]s) )\(?([A-Z])\)?[.*\s]{0,5}$/.exec(line) ?? [];
  if (end !== undefined) return end;
  const [, alone] = /^\(?([A-Za-z])\)?\.?$/.exec(text.trim()) ?? [];
  if (alone !== undefined) return alone.toUpperCase();
  const [, so] = /(?:^|[.;:,] )(?:[Ss]o|[Tt]hus|[Hh]ence|[Tt]herefore),? (?:it(?: is|['’]s) )?\(?([A-Z])\)?[.*\s]{0,5}$/.exec(line) ?? [];
  if (so !== undefined) return so;
  const [, several] =
    /^(?:[Bb]oth )?(?:[Oo]ptions? )?([A-Z](?:(?:, ?| and |, and )[A-Z]){1,9})(?: are (?:the )?(?:correct|right|true)(?: \w{1,10})?)?\.?$/.exec(
      line,
    ) ?? [];
  if (several !== undefined) return several;
  const [, because] = /^(?:[Oo]ption )?\(?([A-Z])\)?,? (?:because|since)\b/.exec(line) ?? [];
  if (because !== undefined) return because;
  const [, letter = '', option = ''] = /(?:^|\*\*|[:,] )\(?([A-Z])[).:] ?([^*\n]{1,200})(?:\*\*)?\.?$/.exec(line) ?? [];
  return letter !== '' && foldText(options[letter.charCodeAt(0) - 65] ?? '') === foldText(option) ? letter : undefined;
}
