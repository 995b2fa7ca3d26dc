// Runs the statements of a template. What was written before `break` or `continue` stays written.

import { evaluate, evaluateMarkup, runFilter } from './evaluate.ts';
import { Scope } from './scope.ts';
import type { AssignTarget, Body, For, Signature, Statement } from './syntax/syntax.ts';
import { toStr } from './values/python-text.ts';
import { Callable, isTrue, iterate, type KeywordArguments, LoopValue, Namespace, type Value } from './values/values.ts';

type Jump = 'break' | 'continue' | undefined;

/** The place of an output; statements append to it. */
type TemplateOutput = string[];

export function renderBody(body: Body, scope: Scope): string {
  const output: TemplateOutput = [];
  run(body, scope, output);
  return output.join('');
}

function run(body: Body, scope: Scope, output: TemplateOutput): Jump {
  for (const statement of body) {
    const jump = runStatement(statement, scope, output);
    if (jump) return jump;
  }
  return undefined;
}

function runStatement(statement: Statement, scope: Scope, output: TemplateOutput): Jump {
  switch (statement.kind) {
    case 'text':
      output.push(statement.text);
      return undefined;
    case 'print':
      output.push(toStr(at(statement.line, () => evaluate(statement.value, scope))));
      return undefined;
    case 'set':
      assign(
        statement.target,
        at(statement.line, () => evaluateMarkup(statement.value, scope)),
        scope,
      );
      return undefined;
    case 'if': {
      const branch = statement.branches.find(({ test }) => isTrue(evaluate(test, scope)));
      return run(branch?.body ?? statement.otherwise, scope, output);
    }
    case 'for':
      runLoop(statement, { scope, output, items: at(statement.line, () => evaluate(statement.items, scope)), depth: 0 });
      return undefined;
    case 'break':
    case 'continue':
      return statement.kind;
    default:
      return runBlock(statement, scope, output);
  }
}

type Block = Extract<Statement, { kind: 'set-block' | 'macro' | 'call-block' | 'filter-block' | 'with' }>;

function runBlock(statement: Block, scope: Scope, output: TemplateOutput): Jump {
  switch (statement.kind) {
    case 'set-block':
      assign(statement.target, filterText(statement, scope), scope);
      return undefined;
    case 'filter-block':
      output.push(toStr(filterText(statement, scope)));
      return undefined;
    case 'macro':
      scope.set(statement.name, toMacro(statement.name, statement, scope));
      return undefined;
    case 'call-block': {
      const { call } = statement;
      const caller = { kind: 'const', value: toMacro('caller', statement, scope) } as const;
      output.push(toStr(evaluate({ ...call, args: { ...call.args, keywords: [...call.args.keywords, ['caller', caller]] } }, scope)));
      return undefined;
    }
    case 'with': {
      const inner = new Scope(scope);
      for (const [target, value] of statement.bindings) assign(target, evaluate(value, scope), inner);
      return run(statement.body, inner, output);
    }
  }
}

function filterText({ filters, body }: Extract<Block, { kind: 'set-block' | 'filter-block' }>, scope: Scope): Value {
  const text: Value = renderBody(body, new Scope(scope));
  return filters.reduce<Value>((value, step) => runFilter(step, value, scope), text);
}

interface LoopRun {
  readonly scope: Scope;
  readonly output: TemplateOutput;
  readonly items: Value;
  readonly depth: number;
}

function runLoop(loop: For, { scope, output, items, depth }: LoopRun): void {
  const chosen = chooseItems(loop, items, scope);
  const again = (inner: Value, innerDepth: number) => {
    const text: TemplateOutput = [];
    runLoop(loop, { scope, output: text, items: inner, depth: innerDepth });
    return text.join('');
  };
  const state = new LoopValue(chosen, depth, loop.isRecursive ? again : undefined);
  for (const [index, item] of chosen.entries()) {
    state.index0 = index;
    const inner = new Scope(scope, [['loop', state]]);
    assign(loop.target, item, inner);
    if (run(loop.body, inner, output) === 'break') break;
  }
  if (chosen.length === 0) run(loop.otherwise, new Scope(scope), output);
}

function chooseItems(loop: For, items: Value, scope: Scope): readonly Value[] {
  const all = [...at(loop.line, () => iterate(items))];
  const { test } = loop;
  if (!test) return all;
  return all.filter((item) => {
    const inner = new Scope(scope);
    assign(loop.target, item, inner);
    return isTrue(evaluate(test, inner));
  });
}

function assign(target: AssignTarget, value: Value, scope: Scope): void {
  if (target.kind === 'name') scope.set(target.name, value);
  else if (target.kind === 'member') {
    const owner = scope.get(target.name);
    if (!(owner instanceof Namespace)) throw new Error('cannot assign attribute on non-namespace object');
    owner.values.set(target.attribute, value);
  } else {
    const items = iterate(value);
    if (items.length !== target.items.length) throw new Error(`cannot unpack ${items.length} values into ${target.items.length} names`);
    for (const [index, inner] of target.items.entries()) assign(inner, items[index] ?? null, scope);
  }
}

/** A macro sees the variables where it is defined, and its own. */
function toMacro(name: string, { signature, body }: { readonly signature: Signature; readonly body: Body }, scope: Scope): Callable {
  return new Callable(name, (args, keywords) => {
    const inner = new Scope(scope, [
      ['varargs', args.slice(signature.names.length)],
      ['kwargs', new Map([...keywords].filter(([key]) => !signature.names.includes(key)))],
    ]);
    const caller = keywords.get('caller');
    if (caller !== undefined) inner.set('caller', caller);
    bind(signature, { args, keywords }, inner);
    return renderBody(body, inner);
  });
}

function bind(
  { names, defaults }: Signature,
  { args, keywords }: { args: readonly Value[]; keywords: KeywordArguments },
  scope: Scope,
): void {
  for (const [index, name] of names.entries()) {
    const value = args[index] ?? keywords.get(name);
    const given = args[index] === null ? null : value;
    const fallback = defaults[index - (names.length - defaults.length)];
    if (given !== undefined) scope.set(name, given);
    else if (fallback) scope.set(name, evaluate(fallback, scope));
    else scope.set(name, new Scope(undefined).get(name));
  }
}

/** Errors name the line of the template. */
function at<T>(line: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && !/^line \d+: /.test(error.message) && error.name !== 'TemplateRaised')
      error.message = `line ${line}: ${error.message}`;
    throw error;
  }
}
