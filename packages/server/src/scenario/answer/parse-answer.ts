// Reads the structure of a short answer: a value, a list, a set, a tuple or an interval, a union, a matrix, or a relation. Everything is bounded
// by the length of the text; what cannot be read is text.

import { call, type MathExpression } from './expression.ts';
import { ExpressionParser, Unreadable } from './parse-expression.ts';
import { type MathToken, normaliseText, tokenise } from './tokens.ts';
import { parseUnit } from './units.ts';

export type ShortAnswer =
  | { readonly kind: 'value'; readonly value: MathExpression; readonly unit?: string }
  /** Items without brackets: the order does not matter. */
  | { readonly kind: 'list'; readonly items: readonly ShortAnswer[] }
  | { readonly kind: 'set'; readonly items: readonly ShortAnswer[] }
  | { readonly kind: 'tuple'; readonly open: string; readonly close: string; readonly items: readonly ShortAnswer[] }
  | { readonly kind: 'union'; readonly items: readonly ShortAnswer[] }
  | { readonly kind: 'matrix'; readonly rows: readonly (readonly ShortAnswer[])[] }
  | { readonly kind: 'relation'; readonly sides: readonly MathExpression[]; readonly marks: readonly string[] }
  | { readonly kind: 'text'; readonly text: string };

export const maxAnswerLength = 4000;
const maxItems = 100;
const maxUnitLength = 80;
/** Each doubles the answers. */
const maxSigns = 2;
const maxNesting = 8;

export function parseAnswer(text: string): ShortAnswer {
  const asText: ShortAnswer = { kind: 'text', text };
  if (text.length > maxAnswerLength) return asText;
  try {
    return read(text);
  } catch (error) {
    if (error instanceof Unreadable) return asText;
    throw error;
  }
}

function read(text: string): ShortAnswer {
  const clean = withoutFont(normaliseText(text).replaceAll('\\$', ' ').replace(/\s+/g, ' ').trim());
  const { rest, unit } = splitUnit(trimEnd(clean));
  const tokens = tokenise(rest);
  if (tokens === undefined || tokens.length === 0) throw new Unreadable('too long, or empty');
  const answer = readTokens(tokens, 0);
  return answer.kind === 'value' && unit !== undefined ? { ...answer, unit } : answer;
}

/** A number in bold is that number: `\textbf{(019)}`. */
function withoutFont(text: string): string {
  const [, number] = /^\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox) ?\{ ?(\(?[-+]?[\d.,/]+\)?) ?\}\.?$/.exec(text) ?? [];
  return number ?? text;
}

/** A loop: a pattern of repeats at the end takes quadratic time. */
function trimEnd(text: string): string {
  let end = text.length;
  for (;;) {
    if (end > 0 && ' .,;:'.includes(text[end - 1] ?? 'x')) end -= 1;
    else if (text.endsWith('\\newline', end)) end -= '\\newline'.length;
    else return text.slice(0, end);
  }
}

const unitAfter =
  /(?<unit>\\(?:text|mathrm|mbox|textrm)\s*\{[^{}]*\}(?:\s*\^\s*\{?-?\d\}?)?|\^\s*\{?\\circ\s*\}?(?:\s*[CF]\b)?|\s[a-zA-Z°µ]{1,12}\.?(?:\s[a-zA-Z]{2,12})?(?:\s*\^\s*\{?\d\}?)?(?:\s*(?:\/|per)\s*[a-zA-Z]{1,8}(?:\s*\^\s*\{?\d\}?)?)?|[a-zA-Z°µ]{2,12}\.?(?:\s*\^\s*\{?\d\}?)?)$/su;

/** A word after a number: `5\text{ cm}` and `5 cm`, not `5x`. In \text, any word is a unit. */
function splitUnit(text: string): { readonly rest: string; readonly unit?: string } {
  const match = unitAfter.exec(text.slice(-maxUnitLength));
  const { unit } = match?.groups ?? {};
  if (!match || unit === undefined || /\\text\s*\{\s*(?:and|or)\s*\}/.test(unit)) return { rest: text };
  const rest = text.slice(0, text.length - match[0].length).trimEnd();
  if (!/[\d)}\]!]$/.test(rest) || (unit.startsWith('^') && /sin|cos|tan|cot|sec|csc/.test(rest))) return { rest: text };
  const isMarked = unit.trimStart().startsWith('\\') || unit.startsWith('^');
  if (isMarked) return { rest, unit: unit.replace(/^\\\w+\s*\{\s*\\?$/, '').trim() };
  return parseUnit(unit) === undefined && !commonWords.test(unit.trim()) ? { rest: text } : { rest, unit: unit.trim() };
}

const commonWords =
  /^(?:square |cubic )?(?:units?|dollars?|cents?|degrees?|people|students?|apples|books|ways|points|times|percent|months?|items|marbles|coins|integers|solutions|pairs|numbers|euros?|pounds?|inches|gallons?|quarts?|cups?)\.?$/i;

function readTokens(tokens: readonly MathToken[], nesting: number): ShortAnswer {
  if (nesting > maxNesting) throw new Unreadable('nested too deeply');
  const items = splitAt(tokens, isSeparator);
  if (items.length > maxItems) throw new Unreadable('too many items');
  if (items.length === 1) return readOne(tokens, nesting);
  const answers = items.filter((item) => item.length > 0).map((item) => readTokens(item, nesting + 1));
  return { kind: 'list', items: answers.flatMap(spread) };
}

/** An item may itself be two, as `3 \pm 1`. */
const spread = (answer: ShortAnswer): readonly ShortAnswer[] => (answer.kind === 'list' ? answer.items : [answer]);

function isSeparator(token: MathToken): boolean {
  return (
    (token.kind === 'mark' && (token.text === ',' || token.text === ';')) || (token.kind === 'text' && /^(?:and|or)$/i.test(token.text))
  );
}

const isCommand = (name: string) => (token: MathToken) => token.kind === 'command' && token.text === name;

function readOne(tokens: readonly MathToken[], nesting: number): ShortAnswer {
  const [first] = tokens;
  if (first?.kind === 'command' && (first.text === 'emptyset' || first.text === 'varnothing') && tokens.length === 1)
    return { kind: 'set', items: [] };
  const membership = splitAt(tokens, isCommand('in'));
  if (membership.length === 2) return readTokens(membership[1] ?? [], nesting + 1);
  const parts = splitAt(tokens, isCommand('cup'));
  if (parts.length > 1) return { kind: 'union', items: parts.map((part) => readOne(part, nesting + 1)) };
  if (first?.text.startsWith('begin ')) return readMatrix(tokens, nesting);
  const isSign = (token: MathToken) => token.kind === 'command' && (token.text === 'pm' || token.text === 'mp');
  const at = tokens.findIndex(isSign);
  if (tokens.filter(isSign).length > maxSigns) throw new Unreadable('too many signs');
  if (at >= 0)
    return { kind: 'list', items: ['+', '-'].map((sign) => readOne(tokens.with(at, { kind: 'mark', text: sign }), nesting + 1)) };
  return readBracketed(tokens, nesting) ?? readRelation(tokens);
}

function readBracketed(tokens: readonly MathToken[], nesting: number): ShortAnswer | undefined {
  const [first, last] = [tokens[0], tokens.at(-1)];
  if (first?.kind !== 'mark' || last?.kind !== 'mark' || closeOf(tokens) !== tokens.length - 1) return undefined;
  const inner = tokens.slice(1, -1);
  const items = splitAt(inner, isSeparator);
  if (items.length > maxItems) throw new Unreadable('too many items');
  if (first.text === '\\{' || (first.text === '{' && items.length > 1)) {
    if (inner.length === 0) return { kind: 'set', items: [] };
    return { kind: 'set', items: items.map((item) => readTokens(item, nesting + 1)).flatMap(spread) };
  }
  if (items.length < 2) return undefined;
  return { kind: 'tuple', open: first.text, close: last.text, items: items.map((item) => readTokens(item, nesting + 1)) };
}

const closers: Readonly<Record<string, readonly string[]>> = { '(': [')', ']'], '[': [']', ')'], '{': ['}'], '\\{': ['\\}'] };
const openers = new Set(Object.keys(closers));
const allClosers = new Set(Object.values(closers).flat());

/** Where the first bracket closes. Round and square ones may close each other, as in a half-open interval. */
function closeOf(tokens: readonly MathToken[]): number | undefined {
  let depth = 0;
  for (const [at, token] of tokens.entries()) {
    if (token.kind !== 'mark') continue;
    if (openers.has(token.text)) depth += 1;
    if (allClosers.has(token.text)) depth -= 1;
    if (depth === 0) return at > 0 ? at : undefined;
  }
  return undefined;
}

function splitAt(tokens: readonly MathToken[], isSplit: (token: MathToken) => boolean): readonly (readonly MathToken[])[] {
  const parts: MathToken[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (token.kind === 'mark' && openers.has(token.text)) depth += 1;
    if (token.kind === 'mark' && allClosers.has(token.text)) depth -= 1;
    if (token.kind === 'command' && token.text.startsWith('begin ')) depth += 1;
    if (token.kind === 'command' && token.text.startsWith('end ')) depth -= 1;
    if (depth === 0 && isSplit(token)) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

function readMatrix(tokens: readonly MathToken[], nesting: number): ShortAnswer {
  const [first, last] = [tokens[0]?.text ?? '', tokens.at(-1)?.text ?? ''];
  const name = first.slice('begin '.length);
  if (!/^(?:[pbvBV]?matrix|smallmatrix|array)\*?$/.test(name) || last !== `end ${name}`) throw new Unreadable(`\\begin{${name}}`);
  const isMark = (text: string) => (token: MathToken) => token.kind === 'mark' && token.text === text;
  const rows = splitAt(tokens.slice(1, -1), isCommand('newline')).filter((row) => row.length > 0);
  return { kind: 'matrix', rows: rows.map((row) => splitAt(row, isMark('&')).map((cell) => readTokens(cell, nesting + 1))) };
}

const relations: ReadonlySet<string> = new Set(['=', '<', '>', '\\le', '\\ge', '\\ne']);

function readRelation(tokens: readonly MathToken[]): ShortAnswer {
  const isRelation = (token: MathToken) => token.kind === 'mark' && relations.has(token.text);
  const parts = splitAt(tokens, isRelation);
  if (parts.length === 1) return { kind: 'value', value: ExpressionParser.parse(tokens) };
  const marks = tokens.filter(isRelation).map(({ text }) => text);
  if (marks.length !== parts.length - 1) throw new Unreadable('a relation in brackets');
  return { kind: 'relation', sides: parts.map((part) => readSide(part)), marks };
}

/** The name before `=` may be anything, such as `\text{Area}`. */
function readSide(tokens: readonly MathToken[]): MathExpression {
  if (tokens.length === 1 && tokens[0]?.kind === 'text') return { kind: 'symbol', name: `text ${tokens[0].text}` };
  return ExpressionParser.parse(tokens);
}

/** The difference of two sides. */
export const differenceOf = (a: MathExpression, b: MathExpression): MathExpression => call('subtract', a, b);
