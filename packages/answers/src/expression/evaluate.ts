// The values of expressions: exact where they are fractions of moderate size, otherwise with hundreds of digits at a point. All values of one
// comparison share one budget of work, so that no answer is slow.

import { integralOf, limitOf } from '../number/calculus.ts';
import type { Complex } from '../number/complex.ts';
import * as complex from '../number/complex.ts';
import { exactOfMany, exactOfOne, exactOfTwo } from '../number/exact.ts';
import { cheapFunctions, functions } from '../number/functions.ts';
import { type Rational, sizeOf } from '../number/rational.ts';
import * as real from '../number/real.ts';
import type { MathExpression } from './expression.ts';

export type Point = ReadonlyMap<string, Complex>;

/** The comparison has used up its budget. */
export class TooMuchWork extends Error {}

/** About as many microseconds. */
const budget = 40_000;
const functionCost = 100;
const integralCost = 10_000;
const maxTerms = 5000n;

export class Evaluator {
  /** What a logarithm without a base means. */
  readonly logBase: 'e' | '10';
  #left = budget;
  readonly #exact = new Map<MathExpression, Rational | undefined>();

  constructor(logBase: 'e' | '10' = 'e') {
    this.logBase = logBase;
  }

  /** Throws when the budget is used up. */
  spend(work: number): void {
    this.#left -= work;
    if (this.#left < 0) throw new TooMuchWork('too much work');
  }

  /** The exact value, if it is a fraction of moderate size. */
  exact(expression: MathExpression): Rational | undefined {
    if (expression.kind === 'number') return expression.value;
    if (expression.kind !== 'call') return undefined;
    if (this.#exact.has(expression)) return this.#exact.get(expression);
    const value = this.#computeExact(expression.name, expression.args);
    this.#exact.set(expression, value);
    return value;
  }

  #computeExact(name: string, args: readonly MathExpression[]): Rational | undefined {
    const values: Rational[] = [];
    for (const one of args) {
      const value = this.exact(one);
      if (value === undefined) return undefined;
      values.push(value);
    }
    this.spend(values.reduce((sum, one) => sum + sizeOf(one), 0));
    const [a, b] = values;
    if (a === undefined) return undefined;
    if (Object.hasOwn(exactOfMany, name)) return exactOfMany[name]?.(values);
    if (name === 'factorial' || name === 'binomial') this.spend(200);
    return b === undefined ? exactOfOne(name, a) : exactOfTwo(name, a, b);
  }

  /** The value at a point. Undefined where there is none. */
  value(expression: MathExpression, point: Point): Complex | undefined {
    try {
      return this.compute(expression, point);
    } catch (error) {
      if (error instanceof real.NoValue) return undefined;
      throw error;
    }
  }

  /** Throws where there is no value. */
  compute(expression: MathExpression, point: Point): Complex {
    this.spend(2);
    const exact = this.exact(expression);
    if (exact !== undefined) return complex.fromRational(exact);
    if (expression.kind === 'symbol') return this.#symbol(expression.name, point);
    if (expression.kind === 'bound') return this.#bound(expression, point);
    if (expression.kind === 'number') return complex.fromRational(expression.value);
    const { name, args } = expression;
    if (name === 'power') return this.#power(args, point);
    const values = args.map((one) => this.compute(one, point));
    const compute = Object.hasOwn(functions, name) ? functions[name] : undefined;
    if (compute === undefined) throw new real.NoValue(`no function ${name}`);
    if (!cheapFunctions.has(name)) this.spend(functionCost);
    return compute(values, this.logBase);
  }

  #symbol(name: string, point: Point): Complex {
    const value = point.get(name) ?? constants.get(name);
    if (value === undefined) throw new real.NoValue(`no value of ${name}`);
    return value;
  }

  /** An odd root of a negative number is negative, also as a power. */
  #power([base, exponent]: readonly MathExpression[], point: Point): Complex {
    if (!base || !exponent) throw new real.NoValue('no power');
    const [value, fraction] = [this.compute(base, point), this.exact(exponent)];
    this.spend(functionCost);
    if (fraction && fraction.bottom % 2n === 1n && fraction.bottom !== 1n && complex.isReal(value) && real.isNegative(value.re))
      return complex.toPower(complex.rootOf(value, fraction.bottom), complex.fromInteger(fraction.top));
    return complex.toPower(value, this.compute(exponent, point));
  }

  #bound({ name, variable, body, args }: Extract<MathExpression, { kind: 'bound' }>, point: Point): Complex {
    const at = (value: Complex): Complex => this.compute(body, new Map([...point, [variable, value]]));
    const [from, to] = args;
    if (from === undefined) throw new real.NoValue('no bounds');
    if (name === 'limit') return limitOf(at, isInfinite(from) ?? this.compute(from, point));
    if (to === undefined) throw new real.NoValue('no bounds');
    const [low, high] = [this.compute(from, point), this.compute(to, point)];
    if (name === 'integral') this.spend(integralCost);
    if (name === 'integral') return integralOf(at, low, high);
    const [first, last] = [real.toInteger(low.re), real.toInteger(high.re)];
    if (first === undefined || last === undefined || last - first > maxTerms) throw new real.NoValue('not a finite sum');
    const [start, join] = name === 'sum' ? [complex.zero, complex.plus] : [complex.one, complex.times];
    let result = start;
    for (let index = first; index <= last; index += 1n) result = join(result, at(complex.fromInteger(index)));
    return result;
  }
}

function isInfinite(expression: MathExpression): 'infinity' | '-infinity' | undefined {
  if (expression.kind === 'symbol' && expression.name === 'infinity') return 'infinity';
  if (expression.kind !== 'call' || expression.name !== 'negate' || expression.args[0] === undefined) return undefined;
  return isInfinite(expression.args[0]) === 'infinity' ? '-infinity' : undefined;
}

const constants: ReadonlyMap<string, Complex> = new Map([
  ['pi', complex.pi],
  ['e', complex.exp(complex.one)],
  ['i', complex.imaginary],
]);
