// Template source to a syntax tree. What a chat template cannot use, such as include, is refused with its line.

import { parseExpression, parseFilterStep, parseTuple } from './parse-expression.ts';
import type { AssignTarget, Body, Expression, FilterStep, Signature, Statement } from './syntax.ts';
import { TemplateTokens } from './token-stream.ts';

export function parseTemplate(source: string): Body {
  const stream = new TemplateTokens(source);
  const body = parseBody(stream, []);
  if (!stream.is('end')) throw stream.fail('expected the end of the template');
  return body;
}

/** Reads up to a tag with one of these names and consumes its `{%`, so that the name is next. */
function parseBody(stream: TemplateTokens, ends: readonly string[]): Body {
  const body: Statement[] = [];
  while (!stream.is('end')) {
    const token = stream.next();
    if (token.kind === 'data') body.push({ kind: 'text', text: token.text });
    else if (token.text === '{{') {
      body.push({ kind: 'print', value: parseTuple(stream), line: token.line });
      stream.expect('close', '}}');
    } else if (stream.is('name', ...ends) && ends.length > 0) return body;
    else body.push(...parseStatement(stream));
  }
  if (ends.length > 0) throw stream.fail(`expected {% ${ends.join(' or ')} %}`);
  return body;
}

/** Reads the body of a tag whose head was read, and its end. */
function parseBlock(stream: TemplateTokens, end: string): Body {
  stream.expect('close', '%}');
  const body = parseBody(stream, [end]);
  closeTag(stream, end);
  return body;
}

function closeTag(stream: TemplateTokens, name: string): void {
  stream.expect('name', name);
  if (name === 'endmacro' && stream.is('name')) stream.next();
  stream.expect('close', '%}');
}

function parseStatement(stream: TemplateTokens): Statement[] {
  const { text: name, line } = stream.expect('name');
  switch (name) {
    case 'if':
      return [parseIf(stream)];
    case 'for':
      return [parseFor(stream, line)];
    case 'set':
      return [parseSet(stream, line)];
    case 'macro':
      return [{ kind: 'macro', name: stream.expect('name').text, signature: parseSignature(stream), body: parseBlock(stream, 'endmacro') }];
    case 'call':
      return [parseCallBlock(stream)];
    case 'filter':
      return [
        { kind: 'filter-block', filters: [parseFilterStep(stream), ...parseMoreFilters(stream)], body: parseBlock(stream, 'endfilter') },
      ];
    case 'with':
      return [{ kind: 'with', bindings: parseBindings(stream), body: parseBlock(stream, 'endwith') }];
    case 'generation': // marks what the assistant wrote; its variables are its own
      return [{ kind: 'with', bindings: [], body: parseBlock(stream, 'endgeneration') }];
    case 'break':
    case 'continue':
      stream.expect('close', '%}');
      return [{ kind: name }];
    default:
      throw stream.fail(`a chat template cannot use {% ${name} %}`);
  }
}

function parseIf(stream: TemplateTokens): Statement {
  const branches: { test: Expression; body: Body }[] = [];
  let otherwise: Body = [];
  for (let name = 'if'; name !== 'endif'; name = stream.next().text) {
    if (name === 'else') {
      stream.expect('close', '%}');
      otherwise = parseBody(stream, ['endif']);
    } else {
      const test = parseTuple(stream, { hasChoice: false });
      stream.expect('close', '%}');
      branches.push({ test, body: parseBody(stream, ['elif', 'else', 'endif']) });
    }
  }
  stream.expect('close', '%}');
  return { kind: 'if', branches, otherwise };
}

function parseFor(stream: TemplateTokens, line: number): Statement {
  const target = parseTarget(stream);
  stream.expect('name', 'in');
  const items = parseTuple(stream, { hasChoice: false });
  const test = stream.skip('name', 'if') ? parseExpression(stream) : undefined;
  const isRecursive = stream.skip('name', 'recursive');
  stream.expect('close', '%}');
  const body = parseBody(stream, ['endfor', 'else']);
  const hasElse = stream.next().text === 'else';
  let otherwise: Body = [];
  if (hasElse) otherwise = parseBlock(stream, 'endfor');
  else stream.expect('close', '%}');
  return { kind: 'for', target, items, test, isRecursive, body, otherwise, line };
}

function parseSet(stream: TemplateTokens, line: number): Statement {
  const target = parseTarget(stream);
  if (stream.skip('operator', '=')) {
    const value = parseTuple(stream);
    stream.expect('close', '%}');
    return { kind: 'set', target, value, line };
  }
  return { kind: 'set-block', target, filters: parseMoreFilters(stream), body: parseBlock(stream, 'endset') };
}

function parseMoreFilters(stream: TemplateTokens): FilterStep[] {
  const filters: FilterStep[] = [];
  while (stream.skip('operator', '|')) filters.push(parseFilterStep(stream));
  return filters;
}

function parseCallBlock(stream: TemplateTokens): Statement {
  const signature = stream.is('operator', '(') ? parseSignature(stream) : { names: [], defaults: [] };
  const call = parseExpression(stream);
  if (call.kind !== 'call') throw stream.fail('expected a call after {% call');
  return { kind: 'call-block', call, signature, body: parseBlock(stream, 'endcall') };
}

function parseBindings(stream: TemplateTokens): (readonly [AssignTarget, Expression])[] {
  const bindings: (readonly [AssignTarget, Expression])[] = [];
  while (!stream.is('close')) {
    if (bindings.length > 0) stream.expect('operator', ',');
    const target = parseOneTarget(stream);
    stream.expect('operator', '=');
    bindings.push([target, parseExpression(stream)]);
  }
  return bindings;
}

function parseSignature(stream: TemplateTokens): Signature {
  const names: string[] = [];
  const defaults: Expression[] = [];
  stream.expect('operator', '(');
  while (!stream.is('operator', ')')) {
    if (names.length > 0) stream.expect('operator', ',');
    if (stream.is('operator', ')')) break;
    names.push(stream.expect('name').text);
    if (stream.skip('operator', '=')) defaults.push(parseExpression(stream));
    else if (defaults.length > 0) throw stream.fail('a parameter without a default follows one with a default');
  }
  stream.expect('operator', ')');
  return { names, defaults };
}

function parseTarget(stream: TemplateTokens): AssignTarget {
  const first = parseOneTarget(stream);
  if (!stream.is('operator', ',')) return first;
  const items = [first];
  while (stream.skip('operator', ',')) if (stream.is('name') || stream.is('operator', '(')) items.push(parseOneTarget(stream));
  return { kind: 'tuple', items };
}

function parseOneTarget(stream: TemplateTokens): AssignTarget {
  if (stream.skip('operator', '(')) {
    const inner = parseTarget(stream);
    stream.expect('operator', ')');
    return inner;
  }
  const name = stream.expect('name').text;
  if (!stream.skip('operator', '.')) return { kind: 'name', name };
  return { kind: 'member', name, attribute: stream.expect('name').text };
}
