// Attributes and items of values, in the order that Jinja2 looks for them. Methods that change a value are refused, as in the sandbox
// that transformers renders chat templates in.

import { Given } from './arguments.ts';
import { countPoints, slicePoints } from './code-points.ts';
import { toRepr, typeName } from './python-text.ts';
import { stringMethod } from './string-methods.ts';
import { Callable, type Dict, isEqual, isMapping, LoopValue, Namespace, Tuple, toNumeric, Undefined, type Value } from './values.ts';

/** `target.name`: an attribute before an item. */
export function getAttribute(target: Value, name: string): Value {
  const own = ownAttribute(target, name);
  if (own !== undefined) return own;
  const item = ownItem(target, name);
  return item === undefined ? missing(target, name) : item;
}

/** `target[key]`: an item before an attribute. */
export function getItem(target: Value, key: Value): Value {
  const item = ownItem(target, key);
  if (item !== undefined) return item;
  const own = typeof key === 'string' ? ownAttribute(target, key) : undefined;
  return own === undefined ? missing(target, key) : own;
}

function missing(target: Value, key: Value): Undefined {
  if (target instanceof Undefined) throw new Error(target.why);
  const what = isMapping(target) ? 'dict' : typeName(target);
  return new Undefined(`${what} has no ${typeof key === 'string' ? `attribute ${key}` : `item ${toRepr(key)}`}`);
}

const changing: Readonly<Record<'dict' | 'list', readonly string[]>> = {
  dict: ['clear', 'pop', 'popitem', 'setdefault', 'update'],
  list: ['append', 'clear', 'extend', 'insert', 'pop', 'remove', 'reverse', 'sort'],
};

function ownAttribute(target: Value, name: string): Value | undefined {
  if (target instanceof Undefined) throw new Error(target.why);
  if (typeof target === 'string') return stringMethod(target, name);
  if (target instanceof LoopValue) return target.get(name);
  if (target instanceof Namespace) return target.values.get(name);
  if (isMapping(target)) return changing.dict.includes(name) ? refuse(name, 'dict') : dictMethod(target, name);
  if (Array.isArray(target) && changing.list.includes(name)) return refuse(name, 'list');
  if (Array.isArray(target) || target instanceof Tuple) return listMethod(Array.isArray(target) ? target : target.items, name);
  return undefined;
}

function refuse(name: string, kind: string): Undefined {
  return new Undefined(`access to attribute '${name}' of '${kind}' object is unsafe`);
}

function dictMethod(dict: Dict, name: string): Callable | undefined {
  switch (name) {
    case 'items':
      return new Callable(name, () => [...dict].map(([key, value]) => new Tuple([key, value])));
    case 'keys':
      return new Callable(name, () => [...dict.keys()]);
    case 'values':
      return new Callable(name, () => [...dict.values()]);
    case 'copy':
      return new Callable(name, () => new Map(dict));
    case 'get':
      return new Callable(name, (args, keywords) => {
        const given = new Given('get', ['key', 'default'], { args, keywords });
        const value = dict.get(given.get('key') ?? null);
        return value === undefined ? (given.get('default') ?? null) : value;
      });
    default:
      return undefined;
  }
}

function listMethod(items: readonly Value[], name: string): Callable | undefined {
  if (name === 'copy') return new Callable(name, () => [...items]);
  if (name === 'count') return new Callable(name, ([value = null]) => BigInt(items.filter((item) => isEqual(item, value)).length));
  if (name !== 'index') return undefined;
  return new Callable(name, ([value = null]) => {
    const at = items.findIndex((item) => isEqual(item, value));
    if (at < 0) throw new Error('the value is not in the list');
    return BigInt(at);
  });
}

function ownItem(target: Value, key: Value): Value | undefined {
  if (target instanceof Undefined) throw new Error(target.why);
  if (isMapping(target)) return target.get(key);
  if (target instanceof Namespace) return undefined;
  const at = toNumeric(key);
  const length = typeof target === 'string' ? countPoints(target) : toSequence(target)?.length;
  if (length === undefined || typeof at !== 'bigint') return undefined;
  const index = Number(at) < 0 ? length + Number(at) : Number(at);
  if (typeof target !== 'string') return toSequence(target)?.[index];
  return index < 0 || index >= length ? undefined : slicePoints(target, index, index + 1);
}

function toSequence(target: Value): readonly Value[] | undefined {
  return target instanceof Tuple ? target.items : Array.isArray(target) ? target : undefined;
}

/** `target[start:stop:step]`. */
export function getSlice(target: Value, bounds: readonly (Value | undefined)[]): Value {
  const isText = typeof target === 'string';
  const [start, stop, step = 1] = bounds.map(toBound);
  if (isText && step === 1 && (start ?? 0) >= 0 && (stop ?? 0) >= 0) return slicePoints(target, start ?? 0, stop);
  const items = isText ? [] : toSequence(target);
  if (!items) {
    if (target instanceof Undefined) throw new Error(target.why);
    return new Undefined(`${typeName(target)} cannot be sliced`);
  }
  if (step === 0) throw new Error('slice step cannot be zero');
  const length = isText ? countPoints(target) : items.length;
  const clamp = (at: number) => Math.min(Math.max(at < 0 ? at + length : at, step < 0 ? -1 : 0), step < 0 ? length - 1 : length);
  const from = start === undefined ? (step < 0 ? length - 1 : 0) : clamp(start);
  const to = stop === undefined ? (step < 0 ? -1 : length) : clamp(stop);
  if (isText && step === 1) return from < to ? slicePoints(target, from, to) : '';
  const all: readonly Value[] = isText ? [...target] : items;
  const picked: Value[] = [];
  for (let at = from; step < 0 ? at > to : at < to; at += step) picked.push(all[at] ?? null);
  if (isText) return picked.join('');
  return target instanceof Tuple ? new Tuple(picked) : picked;
}

function toBound(value: Value | undefined): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = toNumeric(value);
  if (typeof number !== 'bigint') throw new Error('slice indices must be integers');
  return Number(number);
}
