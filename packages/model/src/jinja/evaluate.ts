// Values of expressions.

import type { FilterInput } from './filter.ts';
import { findFilter } from './filters.ts';
import { applyBinary, applyUnary, compare } from './operators.ts';
import type { Scope } from './scope.ts';
import type { ArgumentNodes, Expression, FilterStep } from './syntax/syntax.ts';
import { findTest } from './tests.ts';
import { getAttribute, getItem, getSlice } from './values/attributes.ts';
import { toStr } from './values/python-text.ts';
import { Callable, isMapping, isTrue, iterate, LoopValue, Markup, Tuple, Undefined, type Value } from './values/values.ts';

export function evaluate(node: Expression, scope: Scope): Value {
  return toPlain(evaluateMarkup(node, scope));
}

function toPlain(value: Value): Value {
  return value instanceof Markup ? value.text : value;
}

/** The value with its mark as safe text, which only matters to what is added to it. */
export function evaluateMarkup(node: Expression, scope: Scope): Value {
  switch (node.kind) {
    case 'const':
      return node.value;
    case 'name':
      return scope.get(node.name);
    case 'list':
      return node.items.map((item) => evaluate(item, scope));
    case 'tuple':
      return new Tuple(node.items.map((item) => evaluate(item, scope)));
    case 'dict':
      return new Map(node.entries.map(([key, value]) => [evaluate(key, scope), evaluate(value, scope)]));
    case 'attribute':
      return getAttribute(evaluate(node.target, scope), node.name);
    case 'item':
      return getItem(evaluate(node.target, scope), evaluate(node.key, scope));
    case 'slice':
      return getSlice(
        evaluate(node.target, scope),
        node.bounds.map((bound) => bound && evaluate(bound, scope)),
      );
    case 'call':
      return callValue(evaluate(node.target, scope), evaluateArguments(node.args, scope));
    case 'filter':
      return runFilter(node, evaluate(node.target, scope), scope);
    case 'test':
      return runTest(node, scope);
    default:
      return evaluateOperator(node, scope);
  }
}

type Operator = Extract<Expression, { kind: 'unary' | 'binary' | 'concat' | 'logic' | 'compare' | 'choice' }>;

function evaluateOperator(node: Operator, scope: Scope): Value {
  switch (node.kind) {
    case 'unary':
      return node.operator === 'not' ? !isTrue(evaluate(node.of, scope)) : applyUnary(node.operator, evaluate(node.of, scope));
    case 'binary':
      return combine(node.operator, evaluateMarkup(node.left, scope), evaluateMarkup(node.right, scope));
    case 'concat':
      return node.parts.map((part) => toStr(evaluate(part, scope))).join('');
    case 'logic': {
      const left = evaluate(node.left, scope);
      return isTrue(left) === (node.operator === 'or') ? left : evaluate(node.right, scope);
    }
    case 'compare': {
      let left = evaluate(node.first, scope);
      for (const [operator, operand] of node.rest) {
        const right = evaluate(operand, scope);
        if (!compare(operator, left, right)) return false;
        left = right;
      }
      return true;
    }
    case 'choice':
      if (isTrue(evaluate(node.test, scope))) return evaluate(node.chosen, scope);
      return node.otherwise
        ? evaluate(node.otherwise, scope)
        : new Undefined('the inline if-expression evaluated to false and no else section was defined');
  }
}

/** Text that is added to safe text is escaped, and the sum is safe. */
function combine(operator: string, left: Value, right: Value): Value {
  const sides = [left, right];
  const isMarkup = operator === '+' && sides.some((side) => side instanceof Markup);
  if (!isMarkup || !sides.every((side) => side instanceof Markup || typeof side === 'string'))
    return applyBinary(operator, toPlain(left), toPlain(right));
  return new Markup(sides.map((side) => (side instanceof Markup ? side.text : Markup.escape(toStr(side)))).join(''));
}

type GivenArguments = Omit<FilterInput, 'value'>;

function evaluateArguments({ positional, keywords, spread, keywordSpread }: ArgumentNodes, scope: Scope): GivenArguments {
  const args = positional.map((arg) => evaluate(arg, scope));
  const named = new Map(keywords.map(([name, value]) => [name, evaluate(value, scope)]));
  if (spread) args.push(...iterate(evaluate(spread, scope)));
  const more = keywordSpread ? evaluate(keywordSpread, scope) : undefined;
  if (more !== undefined && isMapping(more)) for (const [name, value] of more) named.set(toStr(name), value);
  return { args, keywords: named };
}

function callValue(target: Value, { args, keywords }: GivenArguments): Value {
  if (target instanceof Callable) return target.call(args, keywords);
  if (target instanceof LoopValue) return target.recurse(args[0] ?? []);
  if (target instanceof Undefined) throw new Error(target.why);
  throw new Error('the value is not callable');
}

export function runFilter(step: FilterStep, value: Value, scope: Scope): Value {
  return runNamed(step.name, { value, ...evaluateArguments(step.args, scope) });
}

function runNamed(name: string, input: FilterInput): Value {
  const filter = findFilter(name);
  if (!filter) throw new Error(`No filter named '${name}'.`);
  return filter(input, runNamed);
}

function runTest(node: Extract<Expression, { kind: 'test' }>, scope: Scope): Value {
  const test = findTest(node.name);
  if (test) return test(evaluate(node.target, scope), evaluateArguments(node.args, scope).args);
  if (node.name === 'filter') return findFilter(toStr(evaluate(node.target, scope))) !== undefined;
  throw new Error(`No test named '${node.name}'.`);
}
