// Expressions of a template, with the precedence that Jinja2 gives their operators.

import type { ArgumentNodes, Expression } from './syntax.ts';
import type { TemplateTokens } from './token-stream.ts';

const constants: Readonly<Record<string, null | boolean>> = { true: true, True: true, false: false, False: false, none: null, None: null };

export function parseExpression(stream: TemplateTokens): Expression {
  let value = parseOr(stream);
  while (stream.skip('name', 'if')) {
    const test = parseOr(stream);
    const otherwise = stream.skip('name', 'else') ? parseExpression(stream) : undefined;
    value = { kind: 'choice', test, chosen: value, otherwise };
  }
  return value;
}

interface TupleOptions {
  /** Whether `a if b else c` may occur; after `for … in`, `if` starts the filter of the loop. */
  readonly hasChoice?: boolean;
  readonly isInParentheses?: boolean;
}

/** One expression, or several with commas: a tuple. */
export function parseTuple(stream: TemplateTokens, { hasChoice = true, isInParentheses = false }: TupleOptions = {}): Expression {
  const items: Expression[] = [];
  let isTuple = false;
  while (!isTupleEnd(stream)) {
    items.push(hasChoice ? parseExpression(stream) : parseOr(stream));
    if (!stream.skip('operator', ',')) break;
    isTuple = true;
  }
  const [only] = items;
  if (!isTuple && only) return only;
  if (!isTuple && !isInParentheses) throw stream.fail('expected an expression');
  return { kind: 'tuple', items };
}

function isTupleEnd(stream: TemplateTokens): boolean {
  return stream.is('close') || stream.is('operator', ')') || stream.is('name', 'recursive');
}

function parseOr(stream: TemplateTokens): Expression {
  let left = parseAnd(stream);
  while (stream.skip('name', 'or')) left = { kind: 'logic', operator: 'or', left, right: parseAnd(stream) };
  return left;
}

function parseAnd(stream: TemplateTokens): Expression {
  let left = parseNot(stream);
  while (stream.skip('name', 'and')) left = { kind: 'logic', operator: 'and', left, right: parseNot(stream) };
  return left;
}

function parseNot(stream: TemplateTokens): Expression {
  return stream.skip('name', 'not') ? { kind: 'unary', operator: 'not', of: parseNot(stream) } : parseCompare(stream);
}

function parseCompare(stream: TemplateTokens): Expression {
  const first = parseSum(stream);
  const rest: (readonly [string, Expression])[] = [];
  for (;;) {
    if (stream.is('operator', '==', '!=', '<', '<=', '>', '>=') || stream.is('name', 'in')) {
      rest.push([stream.next().text, parseSum(stream)]);
    } else if (stream.is('name', 'not') && stream.ahead?.kind === 'name' && stream.ahead.text === 'in') {
      stream.next();
      stream.next();
      rest.push(['not in', parseSum(stream)]);
    } else {
      return rest.length === 0 ? first : { kind: 'compare', first, rest };
    }
  }
}

/** Reads operands of the next higher precedence between these operators, grouped to the left. */
function parseBinary(stream: TemplateTokens, operators: readonly string[], operand: (stream: TemplateTokens) => Expression): Expression {
  let left = operand(stream);
  while (stream.is('operator', ...operators)) {
    const operator = stream.next().text;
    left = { kind: 'binary', operator, left, right: operand(stream) };
  }
  return left;
}

function parseSum(stream: TemplateTokens): Expression {
  return parseBinary(stream, ['+', '-'], parseConcat);
}

function parseConcat(stream: TemplateTokens): Expression {
  const first = parseProduct(stream);
  const parts = [first];
  while (stream.skip('operator', '~')) parts.push(parseProduct(stream));
  return parts.length === 1 ? first : { kind: 'concat', parts };
}

function parseProduct(stream: TemplateTokens): Expression {
  return parseBinary(stream, ['*', '/', '//', '%'], parsePower);
}

function parsePower(stream: TemplateTokens): Expression {
  return parseBinary(stream, ['**'], (inner) => parseUnary(inner));
}

function parseUnary(stream: TemplateTokens, hasFilter = true): Expression {
  const node: Expression = stream.is('operator', '-', '+')
    ? { kind: 'unary', operator: stream.next().text === '-' ? '-' : '+', of: parseUnary(stream, false) }
    : parsePrimary(stream);
  const postfixed = parsePostfix(stream, node);
  return hasFilter ? parseFilters(stream, postfixed) : postfixed;
}

function parsePrimary(stream: TemplateTokens): Expression {
  const token = stream.next();
  const { kind, text } = token;
  if (kind === 'name') {
    const constant = Object.hasOwn(constants, text) ? constants[text] : undefined;
    return constant === undefined ? { kind: 'name', name: text } : { kind: 'const', value: constant };
  }
  if (kind === 'string') return { kind: 'const', value: text + readStrings(stream) };
  if (kind === 'integer') return { kind: 'const', value: BigInt(text.replaceAll('_', '')) };
  if (kind === 'float') return { kind: 'const', value: Number(text.replaceAll('_', '')) };
  if (kind === 'operator' && text === '(') {
    const inner = parseTuple(stream, { isInParentheses: true });
    stream.expect('operator', ')');
    return inner;
  }
  if (kind === 'operator' && text === '[') return { kind: 'list', items: parseItems(stream, ']', parseExpression) };
  if (kind === 'operator' && text === '{') return { kind: 'dict', entries: parseItems(stream, '}', parseEntry) };
  throw stream.fail(`expected a value, not ${JSON.stringify(text)}, before this`);
}

function readStrings(stream: TemplateTokens): string {
  let joined = '';
  while (stream.is('string')) joined += stream.next().text;
  return joined;
}

function parseItems<T>(stream: TemplateTokens, close: string, parse: (stream: TemplateTokens) => T): T[] {
  const items: T[] = [];
  while (!stream.is('operator', close)) {
    if (items.length > 0) stream.expect('operator', ',');
    if (stream.is('operator', close)) break;
    items.push(parse(stream));
  }
  stream.expect('operator', close);
  return items;
}

function parseEntry(stream: TemplateTokens): readonly [Expression, Expression] {
  const key = parseExpression(stream);
  stream.expect('operator', ':');
  return [key, parseExpression(stream)];
}

function parsePostfix(stream: TemplateTokens, start: Expression): Expression {
  let node = start;
  for (;;) {
    if (stream.skip('operator', '.')) {
      const { kind, text } = stream.next();
      if (kind === 'name') node = { kind: 'attribute', target: node, name: text };
      else if (kind === 'integer') node = { kind: 'item', target: node, key: { kind: 'const', value: BigInt(text) } };
      else throw stream.fail('expected a name or a number after "."');
    } else if (stream.skip('operator', '[')) node = parseSubscript(stream, node);
    else if (stream.is('operator', '(')) node = { kind: 'call', target: node, args: parseArguments(stream) };
    else return node;
  }
}

function parseSubscript(stream: TemplateTokens, target: Expression): Expression {
  const bounds: (Expression | undefined)[] = [];
  let bound: Expression | undefined;
  while (!stream.is('operator', ']')) {
    if (stream.skip('operator', ':')) {
      bounds.push(bound);
      bound = undefined;
    } else bound = parseExpression(stream);
    if (stream.is('operator', ',')) throw stream.fail('several subscripts are not supported');
  }
  stream.expect('operator', ']');
  if (bounds.length > 0) return { kind: 'slice', target, bounds: [...bounds, bound] };
  if (!bound) throw stream.fail('expected a subscript');
  return { kind: 'item', target, key: bound };
}

function parseArguments(stream: TemplateTokens): ArgumentNodes {
  stream.expect('operator', '(');
  const positional: Expression[] = [];
  const keywords: (readonly [string, Expression])[] = [];
  let spread: Expression | undefined;
  let keywordSpread: Expression | undefined;
  parseItems(stream, ')', () => {
    if (stream.skip('operator', '*')) spread = parseExpression(stream);
    else if (stream.skip('operator', '**')) keywordSpread = parseExpression(stream);
    else if (stream.is('name') && stream.ahead?.kind === 'operator' && stream.ahead.text === '=') {
      const name = stream.next().text;
      stream.next();
      keywords.push([name, parseExpression(stream)]);
    } else positional.push(parseExpression(stream));
  });
  return { positional, keywords, spread, keywordSpread };
}

const noArguments: ArgumentNodes = { positional: [], keywords: [] };

/** `| filter`, `is test` and calls of their results. */
function parseFilters(stream: TemplateTokens, start: Expression): Expression {
  let node = start;
  for (;;) {
    if (stream.skip('operator', '|')) node = { kind: 'filter', target: node, ...parseFilterStep(stream) };
    else if (stream.skip('name', 'is')) node = parseTest(stream, node);
    else if (stream.is('operator', '(')) node = { kind: 'call', target: node, args: parseArguments(stream) };
    else return node;
  }
}

export function parseFilterStep(stream: TemplateTokens): { readonly name: string; readonly args: ArgumentNodes } {
  const name = stream.expect('name').text;
  return { name, args: stream.is('operator', '(') ? parseArguments(stream) : noArguments };
}

function parseTest(stream: TemplateTokens, target: Expression): Expression {
  const isNegated = stream.skip('name', 'not');
  const name = stream.expect('name').text;
  const test: Expression = { kind: 'test', target, name, args: parseTestArguments(stream) };
  return isNegated ? { kind: 'unary', operator: 'not', of: test } : test;
}

/** A test takes one argument without parentheses. */
function parseTestArguments(stream: TemplateTokens): ArgumentNodes {
  if (stream.is('operator', '(')) return parseArguments(stream);
  const isValue = stream.is('name') || stream.is('string') || stream.is('integer') || stream.is('float') || stream.is('operator', '[', '{');
  if (!isValue || stream.is('name', 'else', 'or', 'and', 'if', 'is', 'not', 'in', 'recursive')) return noArguments;
  return { positional: [parsePostfix(stream, parsePrimary(stream))], keywords: [] };
}
