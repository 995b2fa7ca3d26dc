// Reads the structure of a short answer: a value, a list, a set, a tuple or an interval, a union, a matrix, or a relation. Everything is bounded
// by the length of the text; what cannot be read is text.

import { nameOf, type ShortAnswer } from '../expression/answer-kinds.ts';
import { call, integer, type MathExpression } from '../expression/expression.ts';
import { closeOf, isCommand, isMark, isSeparator, splitAt } from './brackets.ts';
import { readMatrix, scaleMatrix } from './matrix.ts';
import { joinCompound, splitMeasures } from './measures.ts';
import { maxAnswerLength, normaliseText } from './normalise.ts';
import { ExpressionParser } from './parse-expression.ts';
import { Unreadable } from './token-reader.ts';
import { type CommaReading, type MathToken, tokenise } from './tokens.ts';
import { foldWords, splitUnit, splitWords, toSymbols, withoutNames } from './words.ts';

const maxItems = 200;
/** Each doubles the answers. */
const maxSigns = 3;
const maxNesting = 10;

export function parseAnswer(text: string, commas: CommaReading = 'thousands'): ShortAnswer {
  const asText: ShortAnswer = { kind: 'text', text: foldWords(text) };
  if (text.length > maxAnswerLength) return asText;
  try {
    return read(text, commas);
  } catch (error) {
    if (error instanceof Unreadable) return asText;
    throw error;
  }
}

function read(text: string, commas: CommaReading): ShortAnswer {
  const words = splitWords(text);
  if (words) return { kind: 'tuple', open: '(', close: ')', items: words.map((word) => ({ kind: 'text', text: foldWords(word) })) };
  const clean = withoutNames(
    withoutQualifier(trimEnd(withoutFont(toSymbols(foldWords(text)) ?? normaliseText(text)).replace(opening, ''))),
  );
  const whole = tryRead(clean, commas);
  if (whole !== undefined && whole.kind !== 'text') return whole;
  const compound = joinCompound(clean);
  const items = compound === undefined ? splitMeasures(clean)?.map((item) => read(item, commas)) : undefined;
  if (items?.every(({ kind }) => kind === 'value')) return { kind: 'list', joined: 'comma', items };
  const { rest, unit, factor } = splitUnit(compound ?? clean);
  if (unit === undefined && factor === undefined) return whole ?? { kind: 'text', text: foldWords(text) };
  return withUnit(tryRead(rest, commas) ?? { kind: 'text', text: foldWords(text) }, unit, factor);
}

function withUnit(answer: ShortAnswer, unit: string | undefined, factor: bigint | undefined): ShortAnswer {
  if (answer.kind === 'relation')
    return {
      ...answer,
      ...(factor === undefined ? {} : { sides: answer.sides.map((side, at) => (at === 0 ? side : scale(side, factor))) }),
    };
  if (answer.kind !== 'value') return answer;
  return {
    kind: 'value',
    value: factor === undefined ? answer.value : scale(answer.value, factor),
    ...(unit === undefined ? {} : { unit }),
  };
}

const scale = (value: MathExpression, factor: bigint): MathExpression => call('multiply', value, integer(factor));

/** Undefined if the text has words or marks that cannot be read. A degree sign is left to the units. */
function tryRead(text: string, commas: CommaReading): ShortAnswer | undefined {
  const { unit } = splitUnit(text);
  if (unit !== undefined) return undefined;
  const tokens = tokenise(text, commas);
  if (tokens === undefined || tokens.length === 0) throw new Unreadable('too long, or empty');
  try {
    return readTokens(tokens, 0);
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}

/** Words before a value. */
const opening =
  /^(?:\\text ?\{ ?)?(?:(?:approximately|about|roughly|exactly|all|(?:the )?(?:final )?answer(?: is:?|:| =))(?: ?\}| ) ?|\\sim )/i;

/** Numbers in bold are these numbers: `\textbf{(019)}`, `\text{2 and 3}`, `\text{8 ways}`. */
function withoutFont(text: string): string {
  const [, inner = ''] = /^\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox) ?\{([^{}]{1,100})\}\.?$/.exec(text) ?? [];
  if (/^\d+(?:st|nd|rd|th)$/.test(inner)) return inner.slice(0, -2);
  return /^(?:[-+\d.,;/() ]|and|or)+$|^-?[\d.,/]+(?: [a-z]+)+$/i.test(inner) ? inner : text;
}

/** `f(x) = x^2 \text{ for all } x` says no more than without its end, and `\overline{AB}` no more than its letters. */
function withoutQualifier(text: string): string {
  const [, letters] = /^\\(?:overline|triangle) ?\{? ?([A-Z]{2,4}) ?\}?$/.exec(text) ?? [];
  const at = text.search(
    /,? ?(?:\\text ?\{ ?,? ?for (?:all|any|every|each)\b|(?<=[^a-z ]) for (?:all|any|every|each)\b|\\forall(?![a-z]))/,
  );
  return letters ?? (at > 0 && text.length - at < maxQualifierLength ? trimEnd(text.slice(0, at)) : text);
}

const maxQualifierLength = 120;

/** A loop: a pattern of repeats at the end takes quadratic time. */
function trimEnd(text: string): string {
  let end = text.length;
  for (;;) {
    if (end > 0 && ' .,;:'.includes(text[end - 1] ?? 'x')) end -= 1;
    else if (text.endsWith('\\newline', end)) end -= '\\newline'.length;
    else return text.slice(0, end);
  }
}

function readTokens(tokens: readonly MathToken[], nesting: number): ShortAnswer {
  if (nesting > maxNesting) throw new Unreadable('nested too deeply');
  const items = splitAt(tokens, isSeparator);
  if (items.length > maxItems) throw new Unreadable('too many items');
  if (items.length === 1) return readOne(tokens, nesting);
  const words = new Set(tokens.filter(isSeparator).map(({ text }) => text));
  const joined = words.has('or') ? 'or' : words.has('and') ? 'and' : 'comma';
  return { kind: 'list', joined, items: readItems(items, nesting) };
}

function readItems(items: readonly (readonly MathToken[])[], nesting: number): readonly ShortAnswer[] {
  const filled = items.filter((item) => item.length > 0);
  const dots = filled.findIndex(([first], at) => at > 1 && first !== undefined && isDots(first) && filled[at]?.length === 1);
  if (dots > 0) return continueItems(filled, dots);
  // An item may itself be two, as `3 \pm 1`.
  return filled.map((item) => readTokens(item, nesting + 1)).flatMap((answer) => (answer.kind === 'list' ? answer.items : [answer]));
}

const isDots = ({ kind, text }: MathToken): boolean => (kind === 'command' && /^[lc]?dots$/.test(text)) || text === '...';

/** `1, 2, …, 9` with whole numbers in equal steps. */
function continueItems(items: readonly (readonly MathToken[])[], dots: number): readonly ShortAnswer[] {
  const numbers = items
    .filter((_, at) => at !== dots)
    .map((item) => (item.length === 1 && item[0]?.kind === 'number' ? Number(item[0].text) : Number.NaN));
  const [first = 0, second = 0, last = 0] = [numbers[dots - 2], numbers[dots - 1], numbers[dots]];
  const count = (last - second) / (second - first);
  if (dots !== items.length - 2 || !Number.isInteger(count) || count < 1 || count > maxItems) throw new Unreadable('dots');
  const rest = Array.from({ length: count - 1 }, (_, at) => second + (at + 1) * (second - first));
  return [...numbers.slice(0, dots), ...rest, last].map((value) => ({ kind: 'value', value: integer(value) }));
}

function readOne(tokens: readonly MathToken[], nesting: number): ShortAnswer {
  if (nesting > maxNesting) throw new Unreadable('nested too deeply');
  const [first] = tokens;
  if (tokens.length === 1 && first?.kind === 'command') {
    if (first.text === 'emptyset' || first.text === 'varnothing') return { kind: 'set', items: [] };
    if (first.text.startsWith('set ')) return { kind: 'numbers', name: first.text.slice('set '.length) };
  }
  if (tokens.some(({ kind }) => kind === 'text') && tokens.every(({ kind }) => kind === 'text' || kind === 'name'))
    return { kind: 'text', text: foldWords(tokens.map(({ text }) => text).join(' ')) };
  const membership = splitAt(tokens, isCommand('in'));
  if (membership.length === 2) return readTokens(membership[1] ?? [], nesting + 1);
  if (first?.text === '\\{' && closeOf(tokens) === tokens.length - 1) return readBracketed(tokens, nesting) ?? readRelation(tokens);
  return (
    readSets(tokens, nesting) ??
    readSigns(tokens, nesting) ??
    readResidue(tokens) ??
    readBracketed(tokens, nesting) ??
    readNamed(tokens, nesting) ??
    readRelation(tokens)
  );
}

function readSets(tokens: readonly MathToken[], nesting: number): ShortAnswer | undefined {
  const parts = splitAt(tokens, isCommand('cup'));
  if (parts.length > 1) return { kind: 'union', items: parts.map((part) => readOne(part, nesting + 1)) };
  const common = splitAt(tokens, isCommand('cap'));
  if (common.length > 1) return { kind: 'intersection', items: common.map((part) => readOne(part, nesting + 1)) };
  const isMinus = (token: MathToken) =>
    isCommand('setminus')(token) || isCommand('backslash')(token) || (isMark('-')(token) && tokens[0]?.text === 'set R');
  const [whole, without, more] = splitAt(tokens, isMinus);
  if (whole && without && !more && whole.length > 0)
    return { kind: 'difference', whole: readOne(whole, nesting + 1), without: readOne(without, nesting + 1) };
  const begin = tokens.findIndex(({ text }) => text.startsWith('begin '));
  if (begin < 0 || !tokens.at(-1)?.text.startsWith('end ')) return undefined;
  const matrix = readMatrix(tokens.slice(begin), (cell) => readTokens(cell, nesting + 1));
  return begin === 0 ? matrix : scaleMatrix(matrix, ExpressionParser.parse(withoutTimes(tokens.slice(0, begin))));
}

const withoutTimes = (tokens: readonly MathToken[]): readonly MathToken[] => (tokens.at(-1)?.text === '*' ? tokens.slice(0, -1) : tokens);

/** Both signs of `\pm`, all of them alike; `\mp` is the other one. */
function readSigns(tokens: readonly MathToken[], nesting: number): ShortAnswer | undefined {
  const isSign = (token: MathToken) => token.kind === 'command' && (token.text === 'pm' || token.text === 'mp');
  const at = tokens.findIndex(isSign);
  if (at < 0) return undefined;
  if (tokens.filter(isSign).length > maxSigns) throw new Unreadable('too many signs');
  const isPaired = tokens.some(isCommand('mp'));
  const replace = (sign: string, other: string) =>
    tokens.map((token, index) => {
      if (!isSign(token) || (!isPaired && index !== at)) return token;
      return { kind: 'mark', text: token.text === 'pm' ? sign : other } as const;
    });
  const items = [replace('+', '-'), replace('-', '+')].map((one) => readOne(one, nesting + 1));
  const joined = tokens.some(isMark('\\ne')) ? 'and' : 'or';
  return { kind: 'list', joined, items: items.flatMap((answer) => (answer.kind === 'list' ? answer.items : [answer])) };
}

function readResidue(tokens: readonly MathToken[]): ShortAnswer | undefined {
  const isModulo = (token: MathToken) => token.kind === 'command' && ['pmod', 'bmod', 'mod'].includes(token.text);
  const [left = [], right, more] = splitAt(tokens, isModulo);
  if (right === undefined || more !== undefined) return undefined;
  const value = splitAt(left, isCommand('equiv')).at(-1) ?? [];
  return { kind: 'residue', value: ExpressionParser.parse(value), modulus: ExpressionParser.parse(right) };
}

function readBracketed(tokens: readonly MathToken[], nesting: number): ShortAnswer | undefined {
  const [first, last] = [tokens[0], tokens.at(-1)];
  const turned = readTurned(tokens, nesting);
  if (turned !== undefined) return turned;
  if (first?.kind === 'name' && tokens[1]?.text === '(' && closeOf(tokens.slice(1)) === tokens.length - 2) {
    const point = readBracketed(tokens.slice(1), nesting);
    if (point !== undefined) return point;
  }
  if (first?.kind !== 'mark' || last?.kind !== 'mark' || closeOf(tokens) !== tokens.length - 1) return undefined;
  const inner = tokens.slice(1, -1);
  if (inner[0]?.text.startsWith('begin ') && inner.at(-1)?.text.startsWith('end ')) return readOne(inner, nesting + 1);
  const items = splitAt(inner, isSeparator);
  if (items.length > maxItems) throw new Unreadable('too many items');
  if (first.text === '\\{' || (first.text === '{' && items.length > 1)) {
    if (inner.length === 0) return { kind: 'set', items: [] };
    return readCondition(inner, nesting) ?? { kind: 'set', items: readItems(items, nesting) };
  }
  if (items.length < 2) return undefined;
  return { kind: 'tuple', open: first.text, close: last.text, items: items.map((item) => readTokens(item, nesting + 1)) };
}

/** `]0, 1]`, as in France. */
function readTurned(tokens: readonly MathToken[], nesting: number): ShortAnswer | undefined {
  const [first, last] = [tokens[0]?.text, tokens.at(-1)?.text];
  if ((first !== ']' && last !== '[') || tokens.length < 5) return undefined;
  const items = splitAt(tokens.slice(1, -1), isSeparator);
  if (items.length !== 2) return undefined;
  const [open, close] = [first === ']' ? '(' : (first ?? ''), last === '[' ? ')' : (last ?? '')];
  return { kind: 'tuple', open, close, items: items.map((item) => readTokens(item, nesting + 1)) };
}

/** `\{x \mid x > 2\}`: what follows the bar. */
function readCondition(inner: readonly MathToken[], nesting: number): ShortAnswer | undefined {
  const bar = inner.findIndex(({ kind, text }) => kind === 'mark' && (text === '|' || text === ':'));
  const head = inner.slice(0, bar);
  const isHead =
    head[0]?.kind === 'name' && (head.length === 1 || (head.length === 3 && head[1]?.text === 'in' && head[2]?.text === 'set R'));
  return bar > 0 && isHead ? readTokens(inner.slice(bar + 1), nesting + 1) : undefined;
}

const isEqualsSign = isMark('=');

/** `(x, y) = (1, 2)` and `A = \{1, 2\}`. */
function readNamed(tokens: readonly MathToken[], nesting: number): ShortAnswer | undefined {
  const parts = splitAt(tokens, isEqualsSign);
  const [left, right] = [parts[0], parts.at(-1)];
  if (!left || !right || parts.length < 2) return undefined;
  const value = readSets(right, nesting + 1) ?? readBracketed(right, nesting + 1);
  if (value === undefined) return undefined;
  const names = readBracketed(left, nesting + 1);
  if (names?.kind === 'tuple' && value.kind === 'tuple' && names.items.length === value.items.length) {
    const items = names.items.map((item, at) => toNamed(item.kind === 'value' ? nameOf(item.value) : undefined, value.items[at]));
    return { kind: 'list', joined: 'and', items };
  }
  return toNamed(nameOf(readSide(left)), value);
}

function toNamed(name: string | undefined, value: ShortAnswer | undefined): ShortAnswer {
  if (name === undefined || value === undefined) throw new Unreadable('no name');
  return { kind: 'named', name, value };
}

const relations: ReadonlySet<string> = new Set(['=', '<', '>', '\\le', '\\ge', '\\ne']);

function readRelation(tokens: readonly MathToken[]): ShortAnswer {
  const isRelation = (token: MathToken) => token.kind === 'mark' && relations.has(token.text);
  const parts = splitAt(tokens, isRelation);
  if (parts.length === 1) {
    const ratio = splitAt(tokens, isMark(':'));
    if (ratio.length > 1) return { kind: 'ratio', parts: ratio.map((part) => ExpressionParser.parse(part)) };
    return { kind: 'value', value: ExpressionParser.parse(tokens) };
  }
  const marks: string[] = [];
  let at = -1;
  for (const part of parts.slice(0, -1)) {
    at += part.length + 1;
    marks.push(tokens[at]?.text ?? '');
  }
  return { kind: 'relation', sides: parts.map((part) => readSide(part)), marks };
}

/** The name before `=` may be anything, such as `\text{Area}`. */
function readSide(tokens: readonly MathToken[]): MathExpression {
  if (tokens.length > 0 && tokens.every(({ kind }) => kind === 'text'))
    return { kind: 'symbol', name: `text ${tokens.map(({ text }) => text).join(' ')}` };
  // `P(X = 2)` and `\operatorname{Var}(X)` are names too.
  const [first] = tokens;
  const isCalled = tokens[1]?.text === '(' && closeOf(tokens.slice(1)) === tokens.length - 2;
  const isOdd = first?.kind === 'text' || tokens.some((token) => isEqualsSign(token) || isMark('|')(token) || isCommand('mid')(token));
  if (isCalled && isOdd && first?.kind !== 'number') return { kind: 'symbol', name: `text ${tokens.map(({ text }) => text).join(' ')}` };
  return ExpressionParser.parse(tokens);
}
