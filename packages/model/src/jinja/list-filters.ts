// The filters that work on lists: choosing, mapping, sorting, joining.

import type { Filter, FilterInput, RunFilter } from './filter.ts';
import { findTest } from './tests.ts';
import { Given } from './values/arguments.ts';
import { getItem } from './values/attributes.ts';
import { toStr } from './values/python-text.ts';
import { isEqual, isTrue, iterate, order, Tuple, toNumeric, Undefined, type Value } from './values/values.ts';

function define(names: readonly string[], run: (value: Value, given: Given) => Value): Filter {
  return (input) => run(input.value, new Given('filter', names, input));
}

export const listFilters: Readonly<Record<string, Filter>> = {
  list: define([], (value) => [...iterate(value)]),
  first: define([], (value) => pick(iterate(value), 0)),
  last: define([], (value) => pick(iterate(value), -1)),
  reverse: define([], (value) => (typeof value === 'string' ? [...value].reverse().join('') : [...iterate(value)].reverse())),
  join: define(['d', 'attribute'], (value, given) => {
    const attribute = given.get('attribute');
    const items = iterate(value).map((item) => (attribute === undefined || attribute === null ? item : readPath(item, attribute)));
    return items.map(toStr).join(toStr(given.get('d') ?? ''));
  }),
  map,
  select: (input) => choose(input, { wanted: true, byAttribute: false }),
  reject: (input) => choose(input, { wanted: false, byAttribute: false }),
  selectattr: (input) => choose(input, { wanted: true, byAttribute: true }),
  rejectattr: (input) => choose(input, { wanted: false, byAttribute: true }),
  sort: define(['reverse', 'case_sensitive', 'attribute'], (value, given) => {
    const sorted = [...iterate(value)].sort(makeOrder(given));
    return isTrue(given.get('reverse') ?? false) ? reverseStable(sorted, makeOrder(given)) : sorted;
  }),
  unique: define(['case_sensitive', 'attribute'], (value, given) => {
    const toKey = makeKey(given);
    const kept: Value[] = [];
    for (const item of iterate(value)) if (!kept.some((other) => isEqual(toKey(other), toKey(item)))) kept.push(item);
    return kept;
  }),
  min: define(['case_sensitive', 'attribute'], (value, given) => pick([...iterate(value)].sort(makeOrder(given)), 0)),
  max: define(['case_sensitive', 'attribute'], (value, given) => pick([...iterate(value)].sort(makeOrder(given)), -1)),
  sum: define(['attribute', 'start'], (value, given) => {
    const attribute = given.get('attribute');
    const items = iterate(value).map((item) => toNumeric(attribute === undefined || attribute === null ? item : readPath(item, attribute)));
    return items.reduce<bigint | number>((sum, item) => addNumbers(sum, item), toNumeric(given.get('start') ?? 0n) ?? 0n);
  }),
  batch: define(['linecount', 'fill_with'], (value, given) => {
    const size = given.int('linecount') ?? 1;
    const items = iterate(value);
    const rows = Array.from({ length: Math.ceil(items.length / size) }, (_, row) => items.slice(row * size, (row + 1) * size));
    const fill = given.get('fill_with') ?? null;
    return rows.map((row) => (fill === null ? [...row] : [...row, ...Array.from({ length: size - row.length }, () => fill)]));
  }),
  groupby: define(['attribute', 'default', 'case_sensitive'], groupBy),
};

function pick(items: readonly Value[], at: number): Value {
  const item = items.at(at);
  return item === undefined ? new Undefined('the sequence is empty') : item;
}

/** `a.b.0`: each part is an item or an attribute. */
function readPath(value: Value, path: Value): Value {
  const parts: Value[] = typeof path === 'string' ? path.split('.').map((part) => (/^\d+$/.test(part) ? BigInt(part) : part)) : [path];
  return parts.reduce<Value>((target, part) => getItem(target, part), value);
}

/** Nothing, and anything else that is false, has no items for `map` and the filters that choose. */
function map({ value, args, keywords }: FilterInput, run: RunFilter): Value {
  if (!isTrue(value)) return [];
  const attribute = keywords.get('attribute');
  if (attribute !== undefined) {
    const fallback = keywords.get('default');
    return iterate(value).map((item) => {
      const found = readPath(item, attribute);
      return found instanceof Undefined && fallback !== undefined ? fallback : found;
    });
  }
  const [name = null, ...rest] = args;
  if (typeof name !== 'string') throw new Error('map needs the name of a filter, or attribute=');
  return iterate(value).map((item) => run(name, { value: item, args: rest, keywords }));
}

function choose({ value, args }: FilterInput, { wanted, byAttribute }: { wanted: boolean; byAttribute: boolean }): Value {
  const [path, name, rest] = byAttribute ? [args[0], args[1], args.slice(2)] : [undefined, args[0], args.slice(1)];
  const test = name === undefined ? undefined : findTest(toStr(name));
  if (name !== undefined && !test) throw new Error(`No test named ${toStr(name)}.`);
  if (!isTrue(value)) return [];
  return iterate(value).filter((item) => {
    const seen = path === undefined ? item : readPath(item, path);
    return (test ? test(seen, rest) : isTrue(seen)) === wanted;
  });
}

function makeKey(given: Given): (item: Value) => Value {
  const attribute = given.get('attribute') ?? null;
  const isExact = isTrue(given.get('case_sensitive') ?? false);
  return (item) => {
    const key = attribute === null ? item : readPath(item, attribute);
    return typeof key === 'string' && !isExact ? key.toLowerCase() : key;
  };
}

function makeOrder(given: Given): (a: Value, b: Value) => number {
  const toKey = makeKey(given);
  return (a, b) => {
    const difference = order(toKey(a), toKey(b));
    if (difference === undefined) throw new Error('these values have no order');
    return difference;
  };
}

/** Reversed, with equal items in their old order, as Python sorts. */
function reverseStable(sorted: readonly Value[], compare: (a: Value, b: Value) => number): Value[] {
  return [...sorted].sort((a, b) => compare(b, a));
}

function addNumbers(sum: bigint | number, item: bigint | number | undefined): bigint | number {
  if (item === undefined) throw new Error('sum needs numbers');
  return typeof sum === 'bigint' && typeof item === 'bigint' ? sum + item : Number(sum) + Number(item);
}

function groupBy(value: Value, given: Given): Value {
  const toKey = makeKey(given);
  const groups: { key: Value; items: Value[] }[] = [];
  for (const item of [...iterate(value)].sort(makeOrder(given))) {
    const last = groups.at(-1);
    if (last && isEqual(toKey(last.items[0] ?? null), toKey(item))) last.items.push(item);
    else groups.push({ key: readPath(item, given.get('attribute') ?? null), items: [item] });
  }
  return groups.map(({ key, items }) => new Tuple([key, items]));
}
