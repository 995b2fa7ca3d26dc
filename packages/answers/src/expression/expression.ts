// An expression of a short answer.

import type { Rational } from '../number/rational.ts';

export type MathExpression =
  | {
      readonly kind: 'number';
      readonly value: Rational;
      /** Digits after the point; none if it was written without one. */
      readonly decimals?: number;
    }
  | { readonly kind: 'symbol'; readonly name: string }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly MathExpression[] }
  /** A sum, product, integral or limit: `args` are the bounds. */
  | {
      readonly kind: 'bound';
      readonly name: 'sum' | 'product' | 'integral' | 'limit';
      readonly variable: string;
      readonly body: MathExpression;
      readonly args: readonly MathExpression[];
    };

export type Decimal = Extract<MathExpression, { kind: 'number' }> & { readonly decimals: number };

export const call = (name: string, ...args: MathExpression[]): MathExpression => ({ kind: 'call', name, args });
export const integer = (value: bigint | number): MathExpression => ({ kind: 'number', value: { top: BigInt(value), bottom: 1n } });
export const infinity: MathExpression = { kind: 'symbol', name: 'infinity' };
/** The difference of two sides. */
export const differenceOf = (a: MathExpression, b: MathExpression): MathExpression => call('subtract', a, b);

/** Symbols with a value of their own. */
const constants: ReadonlySet<string> = new Set(['pi', 'e', 'i', 'infinity']);

/** The names of its variables. */
export function symbolsOf(expression: MathExpression, found: Set<string> = new Set()): Set<string> {
  if (expression.kind === 'symbol' && !constants.has(expression.name)) found.add(expression.name);
  if (expression.kind === 'call') for (const one of expression.args) symbolsOf(one, found);
  if (expression.kind === 'bound') {
    for (const one of expression.args) symbolsOf(one, found);
    for (const name of symbolsOf(expression.body)) if (name !== expression.variable) found.add(name);
  }
  return found;
}

/** Whether a part is a call of one of these names, or a sum or product. */
export function hasCall(expression: MathExpression, names: ReadonlySet<string>): boolean {
  if (expression.kind === 'bound')
    return names.has(expression.name) || [expression.body, ...expression.args].some((one) => hasCall(one, names));
  return expression.kind === 'call' && (names.has(expression.name) || expression.args.some((one) => hasCall(one, names)));
}

export function hasSymbol(expression: MathExpression, name: string): boolean {
  if (expression.kind === 'symbol') return expression.name === name;
  if (expression.kind === 'bound') return [expression.body, ...expression.args].some((one) => hasSymbol(one, name));
  return expression.kind === 'call' && expression.args.some((one) => hasSymbol(one, name));
}

/** The number that was written as a decimal, with its sign, if it is all of the expression. */
export function toDecimal(expression: MathExpression): Decimal | undefined {
  if (expression.kind === 'number' && expression.decimals !== undefined) return { ...expression, decimals: expression.decimals };
  if (expression.kind !== 'call' || expression.name !== 'negate' || expression.args[0] === undefined) return undefined;
  const inner = toDecimal(expression.args[0]);
  return inner && { ...inner, value: { top: -inner.value.top, bottom: inner.value.bottom } };
}

/** The whole structure as one text, for expressions without a value. */
export function renderStructure(expression: MathExpression): string {
  return JSON.stringify(expression, (key, value) => (key === 'decimals' ? undefined : typeof value === 'bigint' ? `${value}n` : value));
}
