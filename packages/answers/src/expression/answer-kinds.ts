// What a short answer can be.

import type { MathExpression } from './expression.ts';

export type ShortAnswer =
  | { readonly kind: 'value'; readonly value: MathExpression; readonly unit?: string }
  /** Items without brackets: the order does not matter. */
  | { readonly kind: 'list'; readonly items: readonly ShortAnswer[]; readonly joined: 'and' | 'or' | 'comma' }
  | { readonly kind: 'set'; readonly items: readonly ShortAnswer[] }
  | { readonly kind: 'tuple'; readonly open: string; readonly close: string; readonly items: readonly ShortAnswer[] }
  | { readonly kind: 'union'; readonly items: readonly ShortAnswer[] }
  | { readonly kind: 'intersection'; readonly items: readonly ShortAnswer[] }
  /** `\mathbb{R} \setminus \{0\}` */
  | { readonly kind: 'difference'; readonly whole: ShortAnswer; readonly without: ShortAnswer }
  /** `\mathbb{R}`, `\mathbb{Z}` … */
  | { readonly kind: 'numbers'; readonly name: string }
  | { readonly kind: 'matrix'; readonly rows: readonly (readonly ShortAnswer[])[] }
  | { readonly kind: 'relation'; readonly sides: readonly MathExpression[]; readonly marks: readonly string[] }
  /** `A = \{1, 2\}` */
  | { readonly kind: 'named'; readonly name: string; readonly value: ShortAnswer }
  /** `3 \pmod{7}` */
  | { readonly kind: 'residue'; readonly value: MathExpression; readonly modulus: MathExpression }
  /** `1:2:3` */
  | { readonly kind: 'ratio'; readonly parts: readonly MathExpression[] }
  | { readonly kind: 'text'; readonly text: string };

export type AnswerValue = Extract<ShortAnswer, { kind: 'value' }>;
export type AnswerTuple = Extract<ShortAnswer, { kind: 'tuple' }>;
export type Relation = Extract<ShortAnswer, { kind: 'relation' }>;

/** The name that a side of an equation is: `x`, `x_1`, `f(x)`, `AB`, `\angle A`, `\text{Area}`. */
export function nameOf(side: MathExpression | undefined): string | undefined {
  if (side?.kind === 'symbol') return side.name;
  if (side?.kind !== 'call') return undefined;
  const names = side.args.map(nameOf);
  if (side.name === 'multiply' && !names.includes(undefined)) return names.join('');
  if (side.name === 'multiply' && side.args[0]?.kind === 'symbol' && side.args[1]?.kind === 'number')
    return `${side.args[0].name}(${side.args[1].value.top})`;
  if (side.name === 'fraction' && names.every((name) => /^(?:d|partial)./.test(name ?? ''))) return names.join('/');
  // The inverse of a function: f^{-1}(x).
  return side.name === 'power' && names[0] !== undefined && side.args[1]?.kind === 'call' ? `${names[0]}^-1` : undefined;
}
