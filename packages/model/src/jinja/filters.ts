// The filters of `|`, by name, with the arguments and results that Jinja2 and transformers give them.

import type { Filter } from './filter.ts';
import { listFilters } from './list-filters.ts';
import { Given } from './values/arguments.ts';
import { countPoints } from './values/code-points.ts';
import { toJson, toStr, typeName } from './values/python-text.ts';
import { capitalize, printf, replaceText, splitLines, strip } from './values/string-methods.ts';
import { type Dict, isMapping, isTrue, iterate, lengthOf, Markup, Tuple, toNumeric, Undefined, type Value } from './values/values.ts';

function define(names: readonly string[], run: (value: Value, given: Given) => Value): Filter {
  return (input) => run(input.value, new Given('filter', names, input));
}

const text = (run: (text: string) => Value): Filter => define([], (value) => run(toStr(value)));
const fallback = define(['default_value', 'boolean'], (value, given) =>
  value instanceof Undefined || (isTrue(given.get('boolean') ?? false) && !isTrue(value)) ? (given.get('default_value') ?? '') : value,
);
const length = define([], (value) => lengthOf(value));
const escapeHtml: Filter = define([], (value) => new Markup(Markup.escape(toStr(value))));

const filters: Readonly<Record<string, Filter>> = {
  ...listFilters,
  default: fallback,
  d: fallback,
  length,
  count: length,
  escape: escapeHtml,
  e: escapeHtml,
  forceescape: escapeHtml,
  safe: define([], (value) => new Markup(toStr(value))),
  string: text((value) => value),
  upper: text((value) => value.toUpperCase()),
  lower: text((value) => value.toLowerCase()),
  capitalize: text(capitalize),
  title: text((value) => value.replace(/[^-\s({[<]+/g, (word) => capitalize(word))),
  trim: define(['chars'], (value, given) => strip(toStr(value), given.text('chars'), 'both')),
  replace: define(['old', 'new', 'count'], (value, given) =>
    replaceText(toStr(value), { old: toStr(given.get('old') ?? ''), fresh: toStr(given.get('new') ?? ''), count: given.int('count') }),
  ),
  indent: define(['width', 'first', 'blank'], indent),
  wordcount: text((value) => BigInt(value.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)),
  center: define(['width'], (value, given) => center(toStr(value), given.int('width') ?? 80)),
  format: ({ value, args }) => printf(toStr(value), new Tuple(args)),
  tojson: define(['ensure_ascii', 'indent', 'separators', 'sort_keys'], dumpJson),
  int: define(['default', 'base'], (value, given) => toInt(value) ?? given.get('default') ?? 0n),
  float: define(['default'], (value, given) => toFloat(value) ?? given.get('default') ?? 0),
  abs: define([], (value) => {
    const number = toNumeric(value);
    if (number === undefined) throw new Error(`bad operand type for abs(): ${typeName(value)}`);
    return number < 0 ? -number : number;
  }),
  round: define(['precision', 'method'], round),
  items: define([], (value) => {
    if (value instanceof Undefined) return [];
    if (!isMapping(value)) throw new Error('Can only get item pairs from a mapping.');
    return [...value].map(([key, item]) => new Tuple([key, item]));
  }),
  dictsort: define(['case_sensitive', 'by', 'reverse'], (value, given) => sortDict(value, given)),
  urlencode: text((value) =>
    encodeURIComponent(value)
      .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%2F', '/'),
  ),
};

export function findFilter(name: string): Filter | undefined {
  return Object.hasOwn(filters, name) ? filters[name] : undefined;
}

function indent(value: Value, given: Given): Value {
  const width = given.get('width') ?? 4n;
  const margin = typeof width === 'string' ? width : ' '.repeat(Number(toNumeric(width) ?? 4));
  const [isFirst, isBlank] = [isTrue(given.get('first') ?? false), isTrue(given.get('blank') ?? false)];
  const text = splitLines(`${toStr(value)}\n`).join('\n');
  const start = margin.replaceAll('$', '$$$$');
  return (isFirst ? margin : '') + (isBlank ? text.replaceAll('\n', `\n${start}`) : text.replace(/\n(?=[^\n])/g, `\n${start}`));
}

function center(value: string, width: number): string {
  const space = Math.max(width - countPoints(value), 0);
  const left = Math.floor(space / 2) + (space & width & 1);
  return ' '.repeat(left) + value + ' '.repeat(space - left);
}

function dumpJson(value: Value, given: Given): Value {
  const indentation = given.get('indent') ?? null;
  const separators = given.get('separators') ?? null;
  const [comma, colon] = separators === null ? [] : iterate(separators).map(toStr);
  const size = toNumeric(indentation);
  return toJson(value, {
    ascii: isTrue(given.get('ensure_ascii') ?? false),
    indent: typeof indentation === 'string' ? indentation : size === undefined ? undefined : ' '.repeat(Number(size)),
    comma,
    colon,
    sortKeys: isTrue(given.get('sort_keys') ?? false),
  });
}

function toInt(value: Value): bigint | undefined {
  const number = toNumeric(value);
  if (typeof number === 'bigint') return number;
  const float = number ?? (typeof value === 'string' ? parseNumber(value) : undefined);
  if (typeof value === 'string' && /^\s*[+-]?\d[\d_]*\s*$/.test(value)) return BigInt(value.trim().replace(/^\+|_/g, ''));
  return float === undefined || !Number.isFinite(float) ? undefined : BigInt(Math.trunc(float));
}

function toFloat(value: Value): number | undefined {
  const number = toNumeric(value);
  if (number !== undefined) return Number(number);
  return typeof value === 'string' ? parseNumber(value) : undefined;
}

function parseNumber(value: string): number | undefined {
  const trimmed = value.trim().replaceAll('_', '');
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}

function round(value: Value, given: Given): Value {
  const number = Number(toNumeric(value) ?? Number.NaN);
  const scale = 10 ** (given.int('precision') ?? 0);
  const method = given.text('method') ?? 'common';
  if (method === 'ceil') return Math.ceil(number * scale) / scale;
  if (method === 'floor') return Math.floor(number * scale) / scale;
  return roundHalfEven(number * scale) / scale;
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

function sortDict(value: Value, given: Given): Value {
  if (!isMapping(value)) throw new Error('dictsort needs a dict');
  const at = given.text('by') === 'value' ? 1 : 0;
  const isExact = isTrue(given.get('case_sensitive') ?? false);
  const toKey = (entry: readonly [Value, Value]) => {
    const key = entry[at];
    return typeof key === 'string' && !isExact ? key.toLowerCase() : toStr(key);
  };
  const entries: [Value, Value][] = [...(value satisfies Dict)].sort((a, b) => (toKey(a) < toKey(b) ? -1 : Number(toKey(a) > toKey(b))));
  if (isTrue(given.get('reverse') ?? false)) entries.reverse();
  return entries.map((entry) => new Tuple(entry));
}
