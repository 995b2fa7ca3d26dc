// Parses the tokens of one expression. What it cannot read throws an Unreadable, and the answer is then compared as text.

import { call, type MathExpression } from '../expression/expression.ts';
import { manyFunctions, namedFunctions } from '../number/functions.ts';
import { parseDecimal } from '../number/rational.ts';
import { accents, aliases, binomials, bounds, fractions, stops } from './commands.ts';
import { type ExpressionReader, parseBound } from './parse-bound.ts';
import { closers, TokenReader, Unreadable } from './token-reader.ts';
import type { MathToken } from './tokens.ts';

export class ExpressionParser extends TokenReader implements ExpressionReader {
  #bars = 0;

  /** The whole input as one expression. */
  static parse(tokens: readonly MathToken[]): MathExpression {
    const parser = new ExpressionParser(tokens);
    const result = parser.#overOrChoose(parser.sum());
    if (parser.peek() !== undefined) throw new Unreadable(`cannot read ${JSON.stringify(parser.peek()?.text)} here`);
    return result;
  }

  /** A part of the input as an expression. */
  parsePart(tokens: readonly MathToken[]): MathExpression {
    return ExpressionParser.parse(tokens);
  }

  sum(): MathExpression {
    this.enter();
    let left = this.product();
    for (;;) {
      if (this.take('+')) left = call('add', left, this.product());
      else if (this.take('-')) left = call('subtract', left, this.product());
      else break;
    }
    this.leave();
    return left;
  }

  product(): MathExpression {
    let left = this.#signed();
    for (;;) {
      if (this.take('*')) left = call('multiply', left, this.#signed());
      else if (this.take('/')) left = call('divide', left, this.#signed());
      else if (this.#startsAtom()) left = this.#joined(left, this.#power());
      else return left;
    }
  }

  /** `1\frac{1}{2}` is one and a half; everything else that stands together is a product. */
  #joined(left: MathExpression, right: MathExpression): MathExpression {
    if (left.kind === 'call' && left.name === 'negate' && left.args[0]?.kind === 'number')
      return call('negate', this.#joined(left.args[0], right));
    const [percent] = right.kind === 'call' && right.name === 'percent' ? right.args : [];
    if (percent?.kind === 'call' && percent.name === 'fraction') return call('percent', this.#joined(left, percent));
    const isWhole = left.kind === 'number' && left.decimals === undefined;
    const isFraction = right.kind === 'call' && right.name === 'fraction';
    if (isWhole && isFraction && right.args.every((one) => one.kind === 'number')) return call('add', left, call('divide', ...right.args));
    if (left.kind === 'number' && right.kind === 'number') throw new Unreadable('two numbers without an operator');
    return call('multiply', left, right);
  }

  #signed(): MathExpression {
    let sign = 1;
    for (;;) {
      if (this.take('-')) sign = -sign;
      else if (!this.take('+')) break;
    }
    const value = this.#power();
    return sign < 0 ? call('negate', value) : value;
  }

  #power(): MathExpression {
    let base = this.#postfix(this.#atom());
    if (this.take('^')) {
      if (this.#takeCircle()) return this.#afterPower(call('degrees', base));
      base = call('power', base, this.#exponent());
    }
    return this.#afterPower(base);
  }

  #takeCircle(): boolean {
    const isCircle = (ahead: number) => this.peek(ahead)?.text === 'circ' || this.peek(ahead)?.text === 'degree';
    const length = isCircle(0) ? 1 : this.isMark('{') && isCircle(1) && this.isMark('}', 2) ? 3 : 0;
    this.skip(length);
    return length > 0;
  }

  #exponent(): MathExpression {
    this.enter();
    const sign = this.take('-');
    const value = this.#power();
    this.leave();
    return sign ? call('negate', value) : value;
  }

  #postfix(base: MathExpression): MathExpression {
    let value = base;
    for (;;) {
      if (this.take('!')) value = this.#large('factorial', value);
      else if (this.isMark('_') && value.kind === 'symbol') value = this.#withSubscript(value.name);
      else if (this.isMark("'") && value.kind === 'symbol' && this.take("'")) value = { kind: 'symbol', name: `${value.name}'` };
      else return value;
    }
  }

  #large(name: string, ...args: MathExpression[]): MathExpression {
    this.countLarge();
    return call(name, ...args);
  }

  #afterPower(base: MathExpression): MathExpression {
    let value = this.#postfix(base);
    while (this.take('%')) value = call('percent', value);
    return value;
  }

  #withSubscript(name: string): MathExpression {
    this.expect('_');
    const inner = this.take('{') ? this.textUntil('}') : this.next().text;
    return { kind: 'symbol', name: `${name}_${inner}` };
  }

  #startsAtom(): boolean {
    const token = this.peek();
    if (token === undefined || token.kind === 'text') return false;
    if (token.kind === 'mark') return ['(', '[', '{'].includes(token.text) || (token.text === '|' && this.#bars === 0);
    return token.kind !== 'command' || !stops.has(token.text.split(' ')[0] ?? '');
  }

  #atom(): MathExpression {
    const token = this.next();
    if (token.kind === 'number') return toNumber(token.text);
    if (token.kind === 'name') return { kind: 'symbol', name: token.text };
    if (token.kind === 'text') throw new Unreadable(`a word: ${token.text}`);
    if (token.kind === 'command') return this.#command(aliases[token.text] ?? token.text);
    if (token.text === '|') return this.#bar();
    return this.#group(token.text);
  }

  #group(open: string): MathExpression {
    const close = closers[open];
    if (close === undefined || open === '\\{') throw new Unreadable(`cannot start with ${open}`);
    const bars = this.#bars;
    this.#bars = 0;
    const value = this.#overOrChoose(this.sum());
    this.#bars = bars;
    this.expect(close);
    return value;
  }

  /** `{5 \choose 2}` and `{1 \over 2}`. */
  #overOrChoose(top: MathExpression): MathExpression {
    const token = this.peek();
    if (token?.kind !== 'command' || (token.text !== 'over' && token.text !== 'choose')) return top;
    this.skip(1);
    return token.text === 'over' ? call('divide', top, this.sum()) : this.#large('binomial', top, this.sum());
  }

  #bar(): MathExpression {
    this.#bars += 1;
    const value = this.sum();
    this.#bars -= 1;
    this.expect('|');
    return call('abs', value);
  }

  #command(name: string): MathExpression {
    if (fractions.has(name)) return this.#fraction();
    if (binomials.has(name)) return this.#large('binomial', this.argument(), this.argument());
    if (name === 'sqrt') return this.#root();
    if (name === 'cbrt') return call('root', this.argument(), toNumber('3'));
    if (name === 'lfloor' || name === 'lceil') return this.#rounded(name);
    if (accents.has(name)) return this.#isConjugate(name) ? call('conjugate', this.argument()) : this.#named(name);
    if (manyFunctions.has(name)) return this.#many(name);
    if (namedFunctions.has(name)) return this.#function(name);
    if (Object.hasOwn(bounds, name)) return parseBound(bounds[name] ?? 'sum', this);
    if (stops.has(name.split(' ')[0] ?? '')) throw new Unreadable(`\\${name}`);
    return { kind: 'symbol', name };
  }

  /** `\overline{3+2i}`; `\overline{AB}` is a name. */
  #isConjugate(name: string): boolean {
    if (name !== 'overline' && name !== 'bar') return false;
    let [hasSign, hasUnit] = [false, false];
    for (let ahead = 1; this.isMark('{') && this.peek(ahead) !== undefined && !this.isMark('}', ahead); ahead += 1) {
      hasSign ||= this.isMark('+', ahead) || this.isMark('-', ahead);
      hasUnit ||= this.peek(ahead)?.text === 'i';
    }
    return hasSign && hasUnit;
  }

  #named(name: string): MathExpression {
    if (this.take('{')) return { kind: 'symbol', name: `${name} ${this.textUntil('}')}` };
    let text = '';
    while (this.peek()?.kind === 'name') text += this.next().text;
    if (text === '') throw new Unreadable(`\\${name} of nothing`);
    return { kind: 'symbol', name: `${name} ${text}` };
  }

  /** `\max(1, 2)` and `\max\{1, 2\}`. */
  #many(name: string): MathExpression {
    const open = this.next();
    const close = open.kind === 'mark' ? closers[open.text] : undefined;
    if (close === undefined) throw new Unreadable(`\\${name} without brackets`);
    const args = [this.sum()];
    while (this.take(',')) args.push(this.sum());
    this.expect(close);
    return this.#large(name, ...args);
  }

  #rounded(name: string): MathExpression {
    const value = this.sum();
    const end = this.next();
    if (end.text !== name.replace('l', 'r')) throw new Unreadable(`\\${name} is not closed`);
    return call(name === 'lfloor' ? 'floor' : 'ceil', value);
  }

  #root(): MathExpression {
    if (!this.take('[')) return call('sqrt', this.argument());
    const degree = this.sum();
    this.expect(']');
    return call('root', this.argument(), degree);
  }

  /** A group, one digit of a number, or one symbol: `\frac12` is a half. */
  argument(): MathExpression {
    this.enter();
    const value = this.#oneArgument();
    this.leave();
    return value;
  }

  #oneArgument(): MathExpression {
    const token = this.next();
    if (token.kind === 'mark' && (token.text === '{' || token.text === '(')) return this.#group(token.text);
    if (token.kind !== 'number') {
      this.putBack(token);
      return this.#atom();
    }
    return this.#digit(token.text);
  }

  #fraction(): MathExpression {
    const top = this.argument();
    return call('fraction', top, this.argument());
  }

  #digit(text: string): MathExpression {
    if (text.length > 1) this.putBack({ kind: 'number', text: text.slice(1) });
    return toNumber(text.slice(0, 1));
  }

  #function(name: string): MathExpression {
    let base: MathExpression | undefined;
    if (name === 'log' && this.take('_')) base = this.argument();
    const exponent = this.take('^') ? this.#exponent() : undefined;
    this.enter();
    const argument = this.#functionArgument();
    this.leave();
    const isInverse = exponent?.kind === 'call' && exponent.name === 'negate' && ['sin', 'cos', 'tan', 'cot'].includes(name);
    if (isInverse) return call(`arc${name}`, argument);
    const value = base === undefined ? call(name, argument) : call('log', argument, base);
    return exponent === undefined ? value : call('power', value, exponent);
  }

  /** A group, or a product without signs and brackets: `\sin 2x \cos x` is two functions. */
  #functionArgument(): MathExpression {
    if (this.isMark('(') || this.isMark('{') || this.isMark('[') || this.isMark('|')) return this.#power();
    let value = this.#signed();
    while (this.#startsAtom() && !this.isMark('(') && !namedFunctions.has(this.peek()?.text ?? ''))
      value = call('multiply', value, this.#power());
    return value;
  }
}

function toNumber(text: string): MathExpression {
  const value = parseDecimal(text);
  if (value === undefined) throw new Unreadable('a number with too many digits');
  const point = text.indexOf('.');
  return { kind: 'number', value, ...(point < 0 ? {} : { decimals: text.length - point - 1 }) };
}
