// Parses the tokens of one expression. What it cannot read throws an Unreadable, and the answer is then compared as text.

import { aliases, binomials, fractions, functions, stops } from './commands.ts';
import { call, type MathExpression } from './expression.ts';
import { parseDecimal, toRational } from './rational.ts';
import type { MathToken } from './tokens.ts';

export class Unreadable extends Error {}

const maxDepth = 60;
/** Factorials and binomials: their exact values are large. */
const maxProducts = 8;

const closers: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}', '\\{': '\\}' };

export class ExpressionParser {
  readonly #tokens: MathToken[];
  #at = 0;
  #depth = 0;
  #bars = 0;
  #products = 0;

  private constructor(tokens: MathToken[]) {
    this.#tokens = tokens;
  }

  /** The whole input as one expression. */
  static parse(tokens: readonly MathToken[]): MathExpression {
    const parser = new ExpressionParser([...tokens]);
    const result = parser.#sum();
    if (parser.#peek() !== undefined) throw new Unreadable(`cannot read ${JSON.stringify(parser.#peek()?.text)} here`);
    return result;
  }

  #peek(ahead = 0): MathToken | undefined {
    return this.#tokens[this.#at + ahead];
  }

  #isMark(text: string, ahead = 0): boolean {
    const token = this.#peek(ahead);
    return token?.kind === 'mark' && token.text === text;
  }

  #take(text: string): boolean {
    if (!this.#isMark(text)) return false;
    this.#at += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw new Unreadable(`${text} is missing`);
  }

  #sum(): MathExpression {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new Unreadable('nested too deeply');
    let left = this.#product();
    for (;;) {
      if (this.#take('+')) left = call('add', left, this.#product());
      else if (this.#take('-')) left = call('subtract', left, this.#product());
      else break;
    }
    this.#depth -= 1;
    return left;
  }

  #product(): MathExpression {
    let left = this.#signed();
    for (;;) {
      if (this.#take('*')) left = call('multiply', left, this.#signed());
      else if (this.#take('/')) left = call('divide', left, this.#signed());
      else if (this.#startsAtom()) left = this.#joined(left, this.#power());
      else return left;
    }
  }

  /** `1\frac{1}{2}` is one and a half; everything else that stands together is a product. */
  #joined(left: MathExpression, right: MathExpression): MathExpression {
    const isWhole = left.kind === 'number' && !left.isDecimal && left.value.bottom === 1n;
    const isFraction = right.kind === 'call' && right.name === 'fraction';
    if (isWhole && isFraction && right.args.every((one) => one.kind === 'number')) return call('add', left, call('divide', ...right.args));
    if (left.kind === 'number' && right.kind === 'number') throw new Unreadable('two numbers without an operator');
    return call('multiply', left, right);
  }

  #signed(): MathExpression {
    let sign = 1;
    for (;;) {
      if (this.#take('-')) sign = -sign;
      else if (!this.#take('+')) break;
    }
    const value = this.#power();
    return sign < 0 ? call('negate', value) : value;
  }

  #power(): MathExpression {
    let base = this.#postfix(this.#atom());
    if (this.#take('^')) {
      if (this.#takeCircle()) return this.#afterPower(call('degrees', base));
      base = call('power', base, this.#exponent());
    }
    return this.#afterPower(base);
  }

  #takeCircle(): boolean {
    const isCircle = (ahead: number) => this.#peek(ahead)?.text === 'circ' || this.#peek(ahead)?.text === 'degree';
    const length = isCircle(0) ? 1 : this.#isMark('{') && isCircle(1) && this.#isMark('}', 2) ? 3 : 0;
    this.#at += length;
    return length > 0;
  }

  #exponent(): MathExpression {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new Unreadable('nested too deeply');
    const sign = this.#take('-');
    const value = this.#power();
    this.#depth -= 1;
    return sign ? call('negate', value) : value;
  }

  #postfix(base: MathExpression): MathExpression {
    let value = base;
    for (;;) {
      if (this.#take('!')) value = this.#large('factorial', value);
      else if (this.#isMark('_') && value.kind === 'symbol') value = this.#withSubscript(value.name);
      else if (this.#isMark("'") && value.kind === 'symbol' && this.#take("'")) value = { kind: 'symbol', name: `${value.name}'` };
      else return value;
    }
  }

  #large(name: string, ...args: MathExpression[]): MathExpression {
    this.#products += 1;
    if (this.#products > maxProducts) throw new Unreadable('too many factorials');
    return call(name, ...args);
  }

  #afterPower(base: MathExpression): MathExpression {
    let value = this.#postfix(base);
    while (this.#take('%')) value = call('percent', value);
    return value;
  }

  #withSubscript(name: string): MathExpression {
    this.#expect('_');
    const inner = this.#take('{') ? this.#textUntil('}') : this.#next().text;
    return { kind: 'symbol', name: `${name}_${inner}` };
  }

  #textUntil(close: string): string {
    let text = '';
    while (!this.#take(close)) text += this.#next().text;
    return text;
  }

  #next(): MathToken {
    const token = this.#peek();
    if (token === undefined) throw new Unreadable('the expression ends early');
    this.#at += 1;
    return token;
  }

  #startsAtom(): boolean {
    const token = this.#peek();
    if (token === undefined || token.kind === 'text') return false;
    if (token.kind === 'mark') return ['(', '[', '{'].includes(token.text) || (token.text === '|' && this.#bars === 0);
    return token.kind !== 'command' || !stops.has(token.text.split(' ')[0] ?? '');
  }

  #atom(): MathExpression {
    const token = this.#next();
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
    const value = this.#sum();
    this.#bars = bars;
    this.#expect(close);
    return value;
  }

  #bar(): MathExpression {
    this.#bars += 1;
    const value = this.#sum();
    this.#bars -= 1;
    this.#expect('|');
    return call('abs', value);
  }

  #command(name: string): MathExpression {
    if (fractions.has(name)) return this.#fraction();
    if (binomials.has(name)) return this.#large('binomial', this.#argument(), this.#argument());
    if (name === 'sqrt') return this.#root();
    if (name === 'cbrt') return call('root', this.#argument(), toNumber('3'));
    if (name === 'lfloor' || name === 'lceil') return this.#rounded(name);
    if (name === 'overline' || name === 'widehat' || name === 'vec' || name === 'bar') return this.#named(name);
    if (functions.has(name)) return this.#function(name);
    if (stops.has(name.split(' ')[0] ?? '') || name === 'cdots' || name === 'dots' || name === 'ldots') throw new Unreadable(`\\${name}`);
    return { kind: 'symbol', name };
  }

  #named(name: string): MathExpression {
    this.#expect('{');
    return { kind: 'symbol', name: `${name} ${this.#textUntil('}')}` };
  }

  #rounded(name: string): MathExpression {
    const value = this.#sum();
    const end = this.#next();
    if (end.text !== name.replace('l', 'r')) throw new Unreadable(`\\${name} is not closed`);
    return call(name === 'lfloor' ? 'floor' : 'ceil', value);
  }

  #root(): MathExpression {
    if (!this.#take('[')) return call('sqrt', this.#argument());
    const degree = this.#sum();
    this.#expect(']');
    return call('root', this.#argument(), degree);
  }

  /** A group, one digit of a number, or one symbol: `\frac12` is a half. */
  #argument(): MathExpression {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new Unreadable('nested too deeply');
    const value = this.#oneArgument();
    this.#depth -= 1;
    return value;
  }

  #oneArgument(): MathExpression {
    const token = this.#next();
    if (token.kind === 'mark' && (token.text === '{' || token.text === '(')) return this.#group(token.text);
    if (token.kind !== 'number') {
      this.#at -= 1;
      return this.#atom();
    }
    return this.#digit(token.text);
  }

  #fraction(): MathExpression {
    const top = this.#argument();
    return call('fraction', top, this.#argument());
  }

  #digit(text: string): MathExpression {
    if (text.length === 1) return toNumber(text);
    this.#at -= 1;
    this.#tokens[this.#at] = { kind: 'number', text: text.slice(1) };
    return toNumber(text.slice(0, 1));
  }

  #function(name: string): MathExpression {
    let base: MathExpression | undefined;
    if (name === 'log' && this.#take('_')) base = this.#argument();
    const exponent = this.#take('^') ? this.#exponent() : undefined;
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new Unreadable('nested too deeply');
    const argument = this.#functionArgument();
    this.#depth -= 1;
    const isInverse = exponent?.kind === 'call' && exponent.name === 'negate' && ['sin', 'cos', 'tan'].includes(name);
    if (isInverse) return call(`arc${name}`, argument);
    const value = base === undefined ? call(name, argument) : call('log', argument, base);
    return exponent === undefined ? value : call('power', value, exponent);
  }

  /** A group, or a product without signs and brackets: `\sin 2x \cos x` is two functions. */
  #functionArgument(): MathExpression {
    if (this.#isMark('(') || this.#isMark('{') || this.#isMark('[') || this.#isMark('|')) return this.#power();
    let value = this.#signed();
    while (this.#startsAtom() && !this.#isMark('(') && !functions.has(this.#peek()?.text ?? ''))
      value = call('multiply', value, this.#power());
    return value;
  }
}

function toNumber(text: string): MathExpression {
  const value = parseDecimal(text) ?? undefined;
  if (value === undefined) throw new Unreadable('a number with too many digits');
  return { kind: 'number', value: toRational(value.top, value.bottom) ?? value, isDecimal: text.includes('.') };
}
