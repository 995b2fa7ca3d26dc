// Which commands of LaTeX mean what, for the parser of expressions.

export const aliases: Readonly<Record<string, string>> = {
  ...{ asin: 'arcsin', acos: 'arccos', atan: 'arctan', inf: 'infinity', infty: 'infinity', oo: 'infinity', cosec: 'csc' },
  ...{ tg: 'tan', ctg: 'cot', varphi: 'phi', varepsilon: 'epsilon', vartheta: 'theta', hat: 'widehat', overrightarrow: 'vec' },
};
export const fractions: ReadonlySet<string> = new Set(['frac', 'dfrac', 'tfrac', 'cfrac']);
export const binomials: ReadonlySet<string> = new Set(['binom', 'dbinom', 'tbinom']);
/** Marks over a name. */
export const accents: ReadonlySet<string> = new Set([
  'overline',
  'widehat',
  'vec',
  'bar',
  'tilde',
  'underline',
  'overparen',
  'angle',
  'triangle',
]);
/** Sums and the like. */
export const bounds: Readonly<Record<string, 'sum' | 'product' | 'integral' | 'limit'>> = {
  ...{ sum: 'sum', prod: 'product', int: 'integral', lim: 'limit' },
};
/** Commands that end an expression where they stand; the structure around it reads them. */
export const stops: ReadonlySet<string> = new Set([
  ...['cup', 'cap', 'in', 'notin', 'pm', 'mp', 'begin', 'end', 'to', 'rightarrow', 'implies', 'approx', 'equiv', 'text', 'set', 'setminus'],
  ...[
    'over',
    'choose',
    'newline',
    'pmod',
    'bmod',
    'mod',
    'rfloor',
    'rceil',
    'cdots',
    'dots',
    'ldots',
    'emptyset',
    'varnothing',
    'land',
    'lor',
  ],
]);
