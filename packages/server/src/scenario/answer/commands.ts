// Which commands of LaTeX mean what, for the parser of expressions.

import { functionsOfOne } from './expression.ts';

export const aliases: Readonly<Record<string, string>> = {
  ...{ asin: 'arcsin', acos: 'arccos', atan: 'arctan', inf: 'infinity', infty: 'infinity', oo: 'infinity', cosec: 'csc' },
  ...{ tg: 'tan', ctg: 'cot', varphi: 'phi', varepsilon: 'epsilon', vartheta: 'theta' },
};
export const functions: ReadonlySet<string> = new Set(
  Object.keys(functionsOfOne).filter((name) => !['negate', 'percent', 'degrees', 'factorial'].includes(name)),
);
export const fractions: ReadonlySet<string> = new Set(['frac', 'dfrac', 'tfrac', 'cfrac']);
export const binomials: ReadonlySet<string> = new Set(['binom', 'dbinom', 'tbinom']);
/** Commands that end an expression where they stand; the structure around it reads them. */
export const stops: ReadonlySet<string> = new Set([
  'cup',
  'cap',
  'in',
  'pm',
  'mp',
  'begin',
  'end',
  'to',
  'rightarrow',
  'implies',
  'approx',
  'equiv',
  'text',
]);
