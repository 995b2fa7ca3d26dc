// The tests of `is`, by name.

import { fullSpace, toStr } from './values/python-text.ts';
import {
  Callable,
  isEqual,
  isMapping,
  iterate,
  LoopValue,
  Namespace,
  order,
  Tuple,
  toNumeric,
  Undefined,
  type Value,
} from './values/values.ts';

type Test = (value: Value, args: readonly Value[]) => boolean;

const ordered =
  (check: (difference: number) => boolean): Test =>
  (value, [other = null]) => {
    const difference = order(value, other);
    if (difference === undefined) throw new Error('these values have no order');
    return check(difference);
  };
const same: Test = (value, [other = null]) => isEqual(value, other);
const different: Test = (value, [other = null]) => !isEqual(value, other);
const rest = (value: Value, by: Value) => {
  const [number, divisor] = [toNumeric(value), toNumeric(by)];
  if (number === undefined || divisor === undefined) throw new Error('expected a number');
  return Number(number) % Number(divisor);
};

const tests: Readonly<Record<string, Test>> = {
  defined: (value) => !(value instanceof Undefined),
  undefined: (value) => value instanceof Undefined,
  none: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  true: (value) => value === true,
  false: (value) => value === false,
  integer: (value) => typeof value === 'bigint',
  float: (value) => typeof value === 'number',
  number: (value) => toNumeric(value) !== undefined,
  string: (value) => typeof value === 'string',
  mapping: (value) => isMapping(value),
  sequence: isSequence,
  iterable: (value) => isSequence(value),
  callable: (value) => value instanceof Callable,
  sameas: (value, [other = null]) => value === other,
  escaped: () => false,
  in: (value, [container = null]) => contains(container, value),
  divisibleby: (value, [by = null]) => rest(value, by) === 0,
  odd: (value) => Math.abs(rest(value, 2n)) === 1,
  even: (value) => rest(value, 2n) === 0,
  lower: (value) => isCase(toStr(value), (text) => text.toLowerCase()),
  upper: (value) => isCase(toStr(value), (text) => text.toUpperCase()),
  eq: same,
  equalto: same,
  ne: different,
  lt: ordered((difference) => difference < 0),
  lessthan: ordered((difference) => difference < 0),
  le: ordered((difference) => difference <= 0),
  gt: ordered((difference) => difference > 0),
  greaterthan: ordered((difference) => difference > 0),
  ge: ordered((difference) => difference >= 0),
};
const operators: Readonly<Record<string, string>> = { '==': 'eq', '!=': 'ne', '<': 'lt', '<=': 'le', '>': 'gt', '>=': 'ge' };

export function findTest(name: string): Test | undefined {
  const own = operators[name] ?? name;
  return Object.hasOwn(tests, own) ? tests[own] : undefined;
}

function isCase(text: string, convert: (text: string) => string): boolean {
  return text.toLowerCase() !== text.toUpperCase() && convert(text) === text && !fullSpace.test(text);
}

/** Undefined has a length and can be iterated. */
function isSequence(value: Value): boolean {
  return !(
    value === null ||
    toNumeric(value) !== undefined ||
    value instanceof Callable ||
    value instanceof Namespace ||
    value instanceof LoopValue
  );
}

/** `value in container`. */
export function contains(container: Value, value: Value): boolean {
  if (typeof container === 'string') {
    if (typeof value === 'string') return container.includes(value);
    if (value instanceof Undefined) throw new Error(value.why);
    throw new Error("'in <string>' requires string as left operand");
  }
  if (isMapping(container)) return container.has(value);
  if (container instanceof Tuple || Array.isArray(container) || container instanceof Undefined)
    return iterate(container).some((item) => isEqual(item, value));
  throw new Error('the value on the right of "in" is not a container');
}
