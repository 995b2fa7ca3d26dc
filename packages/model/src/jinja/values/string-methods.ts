// The methods of Python's str that a chat template may call. Positions count code points, as in Python.

import { Given } from './arguments.ts';
import { countPoints, pointAt, slicePoints } from './code-points.ts';
import { spaceClass, toStr, trimEndSpace, trimSpace, trimStartSpace } from './python-text.ts';
import { Callable, isMapping, iterate, Tuple, type Value } from './values.ts';

type Method = { readonly names: readonly string[]; readonly run: (text: string, given: Given) => Value };

// biome-ignore lint/suspicious/noControlCharactersInRegex: Python ends lines with them
const lines = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/g;
const spaces = new RegExp(`[${spaceClass}]+`, 'g');
const method = (names: readonly string[], run: Method['run']): Method => ({ names, run });
const isAll = (pattern: RegExp) => method([], (text) => new RegExp(`^(?:${pattern.source})+$`, 'u').test(text));

const methods: Readonly<Record<string, Method>> = {
  strip: method(['chars'], (text, given) => strip(text, given.text('chars'), 'both')),
  lstrip: method(['chars'], (text, given) => strip(text, given.text('chars'), 'start')),
  rstrip: method(['chars'], (text, given) => strip(text, given.text('chars'), 'end')),
  split: method(['sep', 'maxsplit'], (text, given) => split(text, given.text('sep'), given.int('maxsplit') ?? -1)),
  rsplit: method(['sep', 'maxsplit'], (text, given) => splitRight(text, given.text('sep'), given.int('maxsplit') ?? -1)),
  splitlines: method(['keepends'], (text, given) => splitLines(text, given.get('keepends') === true)),
  startswith: method(['prefix', 'start', 'end'], (text, given) => hasAffix(text, given, (part, affix) => part.startsWith(affix))),
  endswith: method(['prefix', 'start', 'end'], (text, given) => hasAffix(text, given, (part, affix) => part.endsWith(affix))),
  upper: method([], (text) => text.toUpperCase()),
  lower: method([], (text) => text.toLowerCase()),
  casefold: method([], (text) => text.toLowerCase()),
  title: method([], (text) => text.replace(/\p{L}+/gu, (word) => capitalize(word))),
  capitalize: method([], (text) => capitalize(text)),
  swapcase: method([], (text) => [...text].map((char) => (char === char.toUpperCase() ? char.toLowerCase() : char.toUpperCase())).join('')),
  replace: method(['old', 'new', 'count'], (text, given) =>
    replaceText(text, { old: given.needText('old'), fresh: given.needText('new'), count: given.int('count') }),
  ),
  join: method(['items'], (text, given) =>
    iterate(given.get('items') ?? null)
      .map(needText)
      .join(text),
  ),
  find: method(['sub', 'start'], (text, given) => BigInt(findText(text, given.needText('sub'), given.int('start') ?? 0))),
  rfind: method(['sub'], (text, given) => toPoint(text, text.lastIndexOf(given.needText('sub')))),
  index: method(['sub', 'start'], (text, given) => {
    const at = findText(text, given.needText('sub'), given.int('start') ?? 0);
    if (at < 0) throw new Error('substring not found');
    return BigInt(at);
  }),
  count: method(['sub'], (text, given) => BigInt(text.split(given.needText('sub')).length - 1)),
  removeprefix: method(['prefix'], (text, given) => removeStart(text, given.needText('prefix'))),
  removesuffix: method(['suffix'], (text, given) => removeEnd(text, given.needText('suffix'))),
  partition: method(['sep'], (text, given) => partition(text, given.needText('sep'), text.indexOf(given.needText('sep')))),
  rpartition: method(['sep'], (text, given) => partitionRight(text, given.needText('sep'))),
  zfill: method(['width'], (text, given) =>
    text.replace(/^([+-]?)(.*)$/s, (_, sign, rest) => sign + rest.padStart((given.int('width') ?? 0) - sign.length, '0')),
  ),
  ljust: method(['width', 'fillchar'], (text, given) => text.padEnd(given.int('width') ?? 0, given.text('fillchar') ?? ' ')),
  rjust: method(['width', 'fillchar'], (text, given) => text.padStart(given.int('width') ?? 0, given.text('fillchar') ?? ' ')),
  isdigit: isAll(/\p{Nd}|[\u00b2\u00b3\u00b9]/u),
  isdecimal: isAll(/\p{Nd}/u),
  isnumeric: isAll(/\p{N}/u),
  isalpha: isAll(/\p{L}/u),
  isalnum: isAll(/[\p{L}\p{N}]/u),
  isspace: isAll(new RegExp(`[${spaceClass}]`)),
  isupper: method([], (text) => text !== text.toLowerCase() && text === text.toUpperCase()),
  islower: method([], (text) => text !== text.toUpperCase() && text === text.toLowerCase()),
};

export function stringMethod(text: string, name: string): Callable | undefined {
  if (name === 'format') return new Callable(name, (args, keywords) => format(text, args, keywords));
  const found = Object.hasOwn(methods, name) ? methods[name] : undefined;
  return found && new Callable(name, (args, keywords) => found.run(text, new Given(name, found.names, { args, keywords })));
}

export function strip(text: string, chars: string | undefined, side: 'both' | 'start' | 'end'): string {
  if (chars === undefined) return side === 'both' ? trimSpace(text) : side === 'start' ? trimStartSpace(text) : trimEndSpace(text);
  const set = new Set(chars);
  let [from, to] = [0, text.length];
  if (side !== 'end') for (let point = pointAt(text, from); from < to && set.has(point); point = pointAt(text, from)) from += point.length;
  if (side !== 'start')
    for (let point = pointBefore(text, to); to > from && set.has(point); point = pointBefore(text, to)) to -= point.length;
  return text.slice(from, to);
}

function pointBefore(text: string, end: number): string {
  const pair = end > 1 ? pointAt(text, end - 2) : '';
  return pair.length === 2 ? pair : text.slice(Math.max(0, end - 1), end);
}

function split(text: string, sep: string | undefined, most: number): Value[] {
  if (sep === '') throw new Error('empty separator');
  if (most < 0) return sep === undefined ? trimSpace(text).split(spaces).filter(Boolean) : text.split(sep);
  const pieces: string[] = [];
  let rest = sep === undefined ? trimStartSpace(text) : text;
  while (pieces.length < most) {
    if (sep === undefined) spaces.lastIndex = 0;
    const match = sep === undefined ? spaces.exec(rest) : null;
    const at = sep === undefined ? (match?.index ?? -1) : rest.indexOf(sep);
    if (at < 0) break;
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at + (sep ?? match?.[0] ?? '').length);
  }
  if (sep === undefined && rest === '') return pieces;
  return [...pieces, sep === undefined && pieces.length < most ? trimEndSpace(rest) : rest];
}

function splitRight(text: string, sep: string | undefined, most: number): Value[] {
  const pieces = split(text, sep, -1);
  if (most < 0 || pieces.length <= most + 1) return pieces;
  if (sep === undefined) throw new Error('rsplit() with a limit needs a separator');
  const head = pieces.slice(0, pieces.length - most).join(sep);
  return [head, ...pieces.slice(pieces.length - most)];
}

export function splitLines(text: string, keepEnds = false): string[] {
  const found = text.split(lines);
  const ends = keepEnds ? text.match(lines) : null;
  if (found.at(-1) === '') found.pop(); // a text that ends a line starts no other one
  return ends ? found.map((line, at) => line + (ends[at] ?? '')) : found;
}

function hasAffix(text: string, given: Given, test: (part: string, affix: string) => boolean): boolean {
  const affix = given.get('prefix') ?? null;
  const [start, end] = [given.int('start') ?? 0, given.int('end')];
  const part =
    start === 0 && end === undefined ? text : slicePoints(text, toPlace(text, start), end === undefined ? end : toPlace(text, end));
  if (affix instanceof Tuple) return affix.items.some((one) => test(part, needText(one)));
  return test(part, needText(affix));
}

function needText(value: Value): string {
  if (typeof value !== 'string') throw new Error('expected a string');
  return value;
}

export function capitalize(text: string): string {
  const first = pointAt(text, 0);
  return first.toUpperCase() + text.slice(first.length).toLowerCase();
}

interface Replacement {
  readonly old: string;
  readonly fresh: string;
  readonly count: number | undefined;
}

/** The first `count` occurrences, or all of them. An empty text occurs before every character and at the end. */
export function replaceText(text: string, { old, fresh, count = -1 }: Replacement): string {
  const pieces = old === '' ? ['', ...text, ''] : text.split(old);
  if (count < 0 || count >= pieces.length) return pieces.join(fresh);
  return (
    pieces.slice(0, count + 1).join(fresh) +
    pieces
      .slice(count + 1)
      .map((piece) => old + piece)
      .join('')
  );
}

/** Where Python counts from for this index. */
const toPlace = (text: string, index: number): number => (index < 0 ? Math.max(0, countPoints(text) + index) : index);

function findText(text: string, part: string, start: number): number {
  const from = slicePoints(text, 0, toPlace(text, start)).length;
  return Number(toPoint(text, text.indexOf(part, from)));
}

function toPoint(text: string, at: number): bigint {
  return at < 0 ? -1n : BigInt(countPoints(text.slice(0, at)));
}

function removeStart(text: string, affix: string): string {
  return affix !== '' && text.startsWith(affix) ? text.slice(affix.length) : text;
}

function removeEnd(text: string, affix: string): string {
  return affix !== '' && text.endsWith(affix) ? text.slice(0, -affix.length) : text;
}

function partition(text: string, sep: string, at: number): Tuple {
  return new Tuple(at < 0 ? [text, '', ''] : [text.slice(0, at), sep, text.slice(at + sep.length)]);
}

function partitionRight(text: string, sep: string): Tuple {
  const at = text.lastIndexOf(sep);
  return at < 0 ? new Tuple(['', '', text]) : partition(text, sep, at);
}

/** str.format with plain fields: {}, {0} and {name}. */
function format(text: string, args: readonly Value[], keywords: ReadonlyMap<string, Value>): string {
  let next = 0;
  return text.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (whole, field?: string) => {
    if (field === undefined) return whole[0] ?? '';
    if (!/^\w*$/.test(field)) throw new Error(`format() does not support the field ${whole}`);
    const value = field === '' ? args[next++] : /^\d+$/.test(field) ? args[Number(field)] : keywords.get(field);
    if (value === undefined) throw new Error(`format() has no value for ${whole}`);
    return toStr(value);
  });
}

/** The % operator of strings, with %s, %d and %r. */
export function printf(text: string, values: Value): string {
  const items = values instanceof Tuple ? values.items : [values];
  let next = 0;
  return text.replace(/%(?:\((\w+)\))?([sdr%])/g, (_, key: string | undefined, kind: string) => {
    if (kind === '%') return '%';
    const value = key === undefined ? items[next++] : isMapping(values) ? values.get(key) : undefined;
    if (value === undefined) throw new Error('not enough arguments for format string');
    return toStr(value);
  });
}
