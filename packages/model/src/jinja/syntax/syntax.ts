// The syntax tree of a template.

import type { Value } from '../values/values.ts';

export interface ArgumentNodes {
  readonly positional: readonly Expression[];
  readonly keywords: readonly (readonly [string, Expression])[];
  readonly spread?: Expression | undefined;
  readonly keywordSpread?: Expression | undefined;
}

export type Expression =
  | { readonly kind: 'const'; readonly value: Value }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list' | 'tuple'; readonly items: readonly Expression[] }
  | { readonly kind: 'dict'; readonly entries: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: 'attribute'; readonly target: Expression; readonly name: string }
  | { readonly kind: 'item'; readonly target: Expression; readonly key: Expression }
  | { readonly kind: 'slice'; readonly target: Expression; readonly bounds: readonly (Expression | undefined)[] }
  | CallNode
  | { readonly kind: 'filter'; readonly target: Expression; readonly name: string; readonly args: ArgumentNodes }
  | { readonly kind: 'test'; readonly target: Expression; readonly name: string; readonly args: ArgumentNodes }
  | { readonly kind: 'unary'; readonly operator: 'not' | '-' | '+'; readonly of: Expression }
  | { readonly kind: 'binary'; readonly operator: string; readonly left: Expression; readonly right: Expression }
  | { readonly kind: 'concat'; readonly parts: readonly Expression[] }
  | { readonly kind: 'logic'; readonly operator: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | { readonly kind: 'compare'; readonly first: Expression; readonly rest: readonly (readonly [string, Expression])[] }
  | { readonly kind: 'choice'; readonly test: Expression; readonly chosen: Expression; readonly otherwise?: Expression | undefined };

interface CallNode {
  readonly kind: 'call';
  readonly target: Expression;
  readonly args: ArgumentNodes;
}

export type AssignTarget =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'tuple'; readonly items: readonly AssignTarget[] }
  | { readonly kind: 'member'; readonly name: string; readonly attribute: string };

export interface Signature {
  readonly names: readonly string[];
  /** Of the last names. */
  readonly defaults: readonly Expression[];
}

export type Body = readonly Statement[];

/** A filter without its input, as in a filter block. */
export interface FilterStep {
  readonly name: string;
  readonly args: ArgumentNodes;
}

export type Statement =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly value: Expression; readonly line: number }
  | { readonly kind: 'if'; readonly branches: readonly { readonly test: Expression; readonly body: Body }[]; readonly otherwise: Body }
  | For
  | { readonly kind: 'set'; readonly target: AssignTarget; readonly value: Expression; readonly line: number }
  | { readonly kind: 'set-block'; readonly target: AssignTarget; readonly filters: readonly FilterStep[]; readonly body: Body }
  | { readonly kind: 'macro'; readonly name: string; readonly signature: Signature; readonly body: Body }
  | { readonly kind: 'call-block'; readonly call: CallNode; readonly signature: Signature; readonly body: Body }
  | { readonly kind: 'filter-block'; readonly filters: readonly FilterStep[]; readonly body: Body }
  | { readonly kind: 'with'; readonly bindings: readonly (readonly [AssignTarget, Expression])[]; readonly body: Body }
  | { readonly kind: 'break' | 'continue' };

export interface For {
  readonly kind: 'for';
  readonly target: AssignTarget;
  readonly items: Expression;
  readonly test: Expression | undefined;
  readonly isRecursive: boolean;
  readonly body: Body;
  readonly otherwise: Body;
  readonly line: number;
}
