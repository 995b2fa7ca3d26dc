// The values of our Jinja, with Python's meaning: an int is a bigint, a float a number, a dict a Map that keeps its order. Equality, truth
// and order are Python's too.

import { countPoints, orderText } from './code-points.ts';

export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Value[]
  | Tuple
  | Dict
  | Markup
  | Undefined
  | Namespace
  | Callable
  | LoopValue;

export type Dict = Map<Value, Value>;
export type KeywordArguments = ReadonlyMap<string, Value>;

export class Tuple {
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** Text that is safe in HTML. Text that is added to it is escaped, as in Jinja2; everything else takes it for a string. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }

  static escape(text: string): string {
    return htmlEscapes.reduce((escaped, [sign, name]) => escaped.replaceAll(sign, name), text);
  }
}

/** The ampersand is the first one, since the others write it. */
const htmlEscapes: readonly (readonly [string, string])[] = [
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ["'", '&#39;'],
  ['"', '&#34;'],
];

/** A missing variable or attribute: it prints nothing, and using it as a value throws `why`. */
export class Undefined {
  readonly why: string;
  /** What the sandbox of chat templates forbids throws already when it is called. */
  constructor(why: string) {
    this.why = why;
  }
}

export class Namespace {
  readonly values: Dict;
  constructor(values: Dict) {
    this.values = values;
  }
}

export class Callable {
  readonly name: string;
  readonly call: (args: readonly Value[], keywords: KeywordArguments) => Value;
  constructor(name: string, call: (args: readonly Value[], keywords: KeywordArguments) => Value) {
    this.name = name;
    this.call = call;
  }
}

/** The variable `loop` of a for loop. */
export class LoopValue {
  readonly #items: readonly Value[];
  readonly #depth: number;
  readonly #again: ((items: Value, depth: number) => string) | undefined;
  #last: readonly Value[] | undefined;
  index0 = 0;

  constructor(items: readonly Value[], depth: number, again?: (items: Value, depth: number) => string) {
    this.#items = items;
    this.#depth = depth;
    this.#again = again;
  }

  /** Undefined where `loop` has no such attribute. */
  get(name: string): Value | undefined {
    const { index0 } = this;
    const { length } = this.#items;
    const known: Readonly<Record<string, () => Value>> = {
      index: () => BigInt(index0 + 1),
      index0: () => BigInt(index0),
      revindex: () => BigInt(length - index0),
      revindex0: () => BigInt(length - index0 - 1),
      first: () => index0 === 0,
      last: () => index0 === length - 1,
      length: () => BigInt(length),
      depth: () => BigInt(this.#depth + 1),
      depth0: () => BigInt(this.#depth),
      previtem: () => this.#itemAt(index0 - 1),
      nextitem: () => this.#itemAt(index0 + 1),
      cycle: () => new Callable('cycle', (args) => args[index0 % Math.max(args.length, 1)] ?? null),
      changed: () => new Callable('changed', (args) => this.#hasChanged(args)),
    };
    return Object.hasOwn(known, name) ? known[name]?.() : undefined;
  }

  recurse(items: Value): string {
    if (!this.#again) throw new Error('loop() needs a loop with "recursive"');
    return this.#again(items, this.#depth + 1);
  }

  #itemAt(index: number): Value {
    const item = this.#items[index];
    return item === undefined ? new Undefined('there is no such item in the loop') : item;
  }

  #hasChanged(values: readonly Value[]): boolean {
    const last = this.#last;
    this.#last = values;
    return !last || last.length !== values.length || values.some((value, index) => !isEqual(value, last[index] ?? null));
  }
}

export function isMapping(value: Value): value is Dict {
  return value instanceof Map;
}

export function isTrue(value: Value): boolean {
  if (value instanceof Undefined || value === null) return false;
  if (value instanceof Tuple) return value.items.length > 0;
  if (Array.isArray(value)) return value.length > 0;
  if (isMapping(value)) return value.size > 0;
  if (typeof value === 'number') return value !== 0; // NaN is true in Python
  return Boolean(value) || typeof value === 'object';
}

type Numeric = bigint | number;

/** True and False are numbers too. */
export function toNumeric(value: Value): Numeric | undefined {
  if (typeof value === 'boolean') return value ? 1n : 0n;
  return typeof value === 'bigint' || typeof value === 'number' ? value : undefined;
}

export function isEqual(a: Value, b: Value): boolean {
  if (a === b) return true;
  const [left, right] = [toNumeric(a), toNumeric(b)];
  // biome-ignore lint/suspicious/noDoubleEquals: 1 == 1.0 across bigint and number
  if (left !== undefined && right !== undefined) return left == right;
  if (a instanceof Undefined) return b instanceof Undefined;
  if (a instanceof Tuple) return b instanceof Tuple && isEqualList(a.items, b.items);
  if (Array.isArray(a)) return Array.isArray(b) && isEqualList(a, b);
  if (!isMapping(a) || !isMapping(b) || a.size !== b.size) return false;
  return [...a].every(([key, item]) => b.has(key) && isEqual(item, b.get(key) ?? null));
}

function isEqualList(a: readonly Value[], b: readonly Value[]): boolean {
  return a.length === b.length && a.every((item, index) => isEqual(item, b[index] ?? null));
}

/** Negative, zero or positive; undefined where Python has no order. */
export function order(a: Value, b: Value): number | undefined {
  const [left, right] = [toNumeric(a), toNumeric(b)];
  if (left !== undefined && right !== undefined) return left < right ? -1 : Number(left > right);
  if (typeof a === 'string' && typeof b === 'string') return orderText(a, b);
  const [one, two] = [toItems(a), toItems(b)];
  if (!one || !two || Array.isArray(a) !== Array.isArray(b)) return undefined;
  for (let index = 0; index < Math.min(one.length, two.length); index++) {
    const [x, y] = [one[index] ?? null, two[index] ?? null];
    if (!isEqual(x, y)) return order(x, y);
  }
  return one.length - two.length;
}

function toItems(value: Value): readonly Value[] | undefined {
  return value instanceof Tuple ? value.items : Array.isArray(value) ? value : undefined;
}

/** The items that a loop sees; throws for what cannot be iterated. */
export function iterate(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value;
  if (value instanceof Tuple) return value.items;
  if (isMapping(value)) return [...value.keys()];
  if (typeof value === 'string') return [...value];
  if (value instanceof Undefined) return [];
  throw new Error('the value is not iterable');
}

export function lengthOf(value: Value): bigint {
  if (
    value instanceof Namespace ||
    value instanceof Callable ||
    value instanceof LoopValue ||
    toNumeric(value) !== undefined ||
    value === null
  )
    throw new Error('the value has no length');
  return BigInt(typeof value === 'string' ? countPoints(value) : iterate(value).length);
}

const exactValue = Symbol('exact value');

/** Notes on an object what its JSON said exactly, for `toValue`. */
export function rememberExact(data: object, value: Value): void {
  Object.defineProperty(data, exactValue, { value });
}

function exactOf(data: unknown): Value | undefined {
  return typeof data === 'object' && data !== null && exactValue in data ? (data[exactValue] as Value) : undefined;
}

/** JavaScript data, as JSON.parse gives it, as values. A number without a fraction is an int. */
export function toValue(data: unknown): Value {
  if (data === null || data === undefined) return null;
  if (typeof data === 'string' || typeof data === 'boolean' || typeof data === 'bigint') return data;
  if (typeof data === 'number') return Number.isInteger(data) ? BigInt(data) : data;
  if (Array.isArray(data)) return data.map(toValue);
  if (isValue(data)) return data;
  const exact = exactOf(data);
  if (exact !== undefined) return exact;
  if (typeof data === 'object') return new Map(definedEntries(data).map(([key, item]) => [key, toValue(item)]));
  throw new Error(`a template cannot take a ${typeof data}`);
}

function definedEntries(data: object): [string, unknown][] {
  return Object.entries(data).filter(([, item]) => item !== undefined);
}

function isValue(data: unknown): data is Tuple | Dict | Undefined | Namespace | Callable {
  return [Tuple, Map, Undefined, Namespace, Callable].some((kind) => data instanceof kind);
}
