// Parses sums, products, integrals and limits, which name a variable of their own.

import { call, integer, type MathExpression } from '../expression/expression.ts';
import { closers, type TokenReader, Unreadable } from './token-reader.ts';
import type { MathToken } from './tokens.ts';

type Bound = Extract<MathExpression, { kind: 'bound' }>;

/** The parser of the expressions in it. */
export interface ExpressionReader extends TokenReader {
  sum(): MathExpression;
  product(): MathExpression;
  argument(): MathExpression;
  parsePart(tokens: readonly MathToken[]): MathExpression;
}

export function parseBound(name: Bound['name'], reader: ExpressionReader): MathExpression {
  reader.enter();
  reader.countLarge();
  reader.expect('_');
  const value = name === 'integral' ? parseIntegral(reader) : name === 'limit' ? parseLimit(reader) : parseSeries(name, reader);
  reader.leave();
  return value;
}

function parseSeries(name: 'sum' | 'product', reader: ExpressionReader): Bound {
  reader.expect('{');
  const variable = reader.nextName();
  reader.expect('=');
  const from = reader.sum();
  reader.expect('}');
  reader.expect('^');
  return { kind: 'bound', name, variable, args: [from, reader.argument()], body: reader.product() };
}

function parseLimit(reader: ExpressionReader): Bound {
  reader.expect('{');
  const variable = reader.nextName();
  if (!['to', 'rightarrow'].includes(reader.next().text)) throw new Unreadable('a limit without \\to');
  const args = [reader.sum()];
  reader.expect('}');
  return { kind: 'bound', name: 'limit', variable, args, body: reader.product() };
}

/** Its body ends at `dx`, which may also stand in a numerator. */
function parseIntegral(reader: ExpressionReader): Bound {
  const from = signedArgument(reader);
  reader.expect('^');
  const args = [from, signedArgument(reader)];
  const before = reader.takeUntil((ahead) => reader.peek(ahead)?.text === 'd' && reader.peek(ahead + 1)?.kind === 'name');
  reader.skip(1);
  const variable = reader.nextName();
  if (depthOf(before) === 0) {
    const body = before.length === 0 ? integer(1) : reader.parsePart(before);
    return { kind: 'bound', name: 'integral', variable, args, body };
  }
  const rest: MathToken[] = [];
  while (reader.peek() !== undefined) rest.push(reader.next());
  return { kind: 'bound', name: 'integral', variable, args, body: reader.parsePart([...before, { kind: 'number', text: '1' }, ...rest]) };
}

const signedArgument = (reader: ExpressionReader): MathExpression =>
  reader.take('-') ? call('negate', reader.argument()) : reader.argument();

const allClosers: ReadonlySet<string> = new Set(Object.values(closers));

function depthOf(tokens: readonly MathToken[]): number {
  return tokens.reduce((depth, { text }) => depth + (text in closers ? 1 : allClosers.has(text) ? -1 : 0), 0);
}
