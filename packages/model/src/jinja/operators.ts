// Arithmetic and comparison with Python's types: int stays exact, / gives a float, // and % round down, and text is never added to
// numbers.

import { contains } from './tests.ts';
import { toRepr, typeName } from './values/python-text.ts';
import { printf } from './values/string-methods.ts';
import { isEqual, order, Tuple, toNumeric, Undefined, type Value } from './values/values.ts';

export function applyBinary(operator: string, left: Value, right: Value): Value {
  for (const side of [left, right]) if (side instanceof Undefined) throw new Error(side.why);
  const [a, b] = [toNumeric(left), toNumeric(right)];
  if (a !== undefined && b !== undefined)
    return typeof a === 'bigint' && typeof b === 'bigint' ? onInts(operator, a, b) : onFloats(operator, Number(a), Number(b));
  if (operator === '+') {
    if (typeof left === 'string' && typeof right === 'string') return left + right;
    if (Array.isArray(left) && Array.isArray(right)) return [...left, ...right];
    if (left instanceof Tuple && right instanceof Tuple) return new Tuple([...left.items, ...right.items]);
  }
  if (operator === '*' && typeof b === 'bigint') return repeat(left, Number(b));
  if (operator === '*' && typeof a === 'bigint') return repeat(right, Number(a));
  if (operator === '%' && typeof left === 'string') return printf(left, right);
  throw unsupported(operator, left, right);
}

function repeat(value: Value, times: number): Value {
  const count = Math.max(times, 0);
  if (typeof value === 'string') return value.repeat(count);
  if (Array.isArray(value)) return Array.from({ length: count }, () => value).flat();
  throw new Error(`cannot repeat ${typeName(value)}`);
}

function unsupported(operator: string, left: Value, right: Value): Error {
  return new Error(`unsupported operand types for ${operator}: ${typeName(left)} and ${typeName(right)} (${toRepr(right).slice(0, 60)})`);
}

function onInts(operator: string, a: bigint, b: bigint): Value {
  if (['/', '//', '%'].includes(operator) && b === 0n) throw new Error('division by zero');
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return Number(a) / Number(b);
    case '//':
      return floorDivide(a, b);
    case '%':
      return a - floorDivide(a, b) * b;
    default:
      return b < 0n ? Number(a) ** Number(b) : a ** b;
  }
}

function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

function onFloats(operator: string, a: number, b: number): Value {
  if (['/', '//', '%'].includes(operator) && b === 0) throw new Error('float division by zero');
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '//':
      return Math.floor(a / b);
    case '%':
      return a - Math.floor(a / b) * b;
    default:
      return a ** b;
  }
}

export function applyUnary(operator: '-' | '+', value: Value): Value {
  const number = toNumeric(value);
  if (number === undefined) throw new Error(`bad operand type for unary ${operator}: ${typeName(value)}`);
  return operator === '-' ? -number : number;
}

export function compare(operator: string, left: Value, right: Value): boolean {
  if (operator === '==') return isEqual(left, right);
  if (operator === '!=') return !isEqual(left, right);
  if (operator === 'in') return contains(right, left);
  if (operator === 'not in') return !contains(right, left);
  for (const side of [left, right]) if (side instanceof Undefined) throw new Error(side.why);
  const difference = order(left, right);
  if (difference === undefined) throw new Error(`${operator} is not supported between ${typeName(left)} and ${typeName(right)}`);
  if (operator === '<') return difference < 0;
  if (operator === '<=') return difference <= 0;
  return operator === '>' ? difference > 0 : difference >= 0;
}
