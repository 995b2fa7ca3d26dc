// Reads matrices, determinants and systems of equations.

import type { ShortAnswer } from '../expression/answer-kinds.ts';
import { call, type MathExpression } from '../expression/expression.ts';
import { isCommand, isMark, splitAt } from './brackets.ts';
import { Unreadable } from './token-reader.ts';
import type { MathToken } from './tokens.ts';

const maxDeterminant = 3;

export function readMatrix(tokens: readonly MathToken[], read: (cell: readonly MathToken[]) => ShortAnswer): ShortAnswer {
  const [first, last] = [tokens[0]?.text ?? '', tokens.at(-1)?.text ?? ''];
  const name = first.slice('begin '.length).replace(/\*$/, '');
  if (last.replace(/\*$/, '') !== `end ${name}`) throw new Unreadable(`\\begin{${name}}`);
  const lines = splitAt(tokens.slice(1, -1), isCommand('newline')).filter((row) => row.length > 0);
  const isSystem = lines.every((row) => row.some(({ text }) => text === '='));
  if (isSystem && /^(?:cases|aligned|align|array|gathered)$/.test(name))
    return toList(lines.map((row) => read(row.filter(({ text }) => text !== '&'))));
  if (name === 'cases') return toList(lines.map((row) => read(row)));
  const rows = lines.map((row) => splitAt(row, isMark('&')).map((cell) => read(cell)));
  if (name === 'vmatrix') return { kind: 'value', value: determinantOf(rows.map((row) => row.map(expressionOf))) };
  if (!/^(?:[pbB]?matrix|smallmatrix|array)$/.test(name)) throw new Unreadable(`\\begin{${name}}`);
  return { kind: 'matrix', rows };
}

/** `\frac{1}{2}` before a matrix. */
export function scaleMatrix(matrix: ShortAnswer, factor: MathExpression): ShortAnswer {
  if (matrix.kind !== 'matrix') throw new Unreadable('a factor of what is no matrix');
  const scale = (cell: ShortAnswer): ShortAnswer => ({ kind: 'value', value: call('multiply', factor, expressionOf(cell)) });
  return { ...matrix, rows: matrix.rows.map((row) => row.map(scale)) };
}

const toList = (items: readonly ShortAnswer[]): ShortAnswer => ({
  kind: 'list',
  joined: 'and',
  items: items.flatMap((item) => (item.kind === 'list' ? item.items : [item])),
});

function expressionOf(cell: ShortAnswer): MathExpression {
  if (cell.kind !== 'value') throw new Unreadable('a determinant of more than numbers');
  return cell.value;
}

function determinantOf(rows: readonly (readonly MathExpression[])[]): MathExpression {
  const [first = [], ...others] = rows;
  const [only] = first;
  if (rows.length > maxDeterminant || rows.some((row) => row.length !== rows.length) || only === undefined)
    throw new Unreadable('a determinant');
  if (rows.length === 1) return only;
  return first
    .map((cell, at) => call('multiply', cell, determinantOf(others.map((row) => row.toSpliced(at, 1)))))
    .reduce((sum, term, at) => call(at % 2 === 0 ? 'add' : 'subtract', sum, term));
}
