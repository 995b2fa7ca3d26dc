// Tables for terminals: aligned columns under a heading, cut to the width of the terminal.

import { type Colour, cut, openPaint, type Paint, padEnd, padStart, wantsColor, width } from './text.ts';

export interface TableRow {
  readonly cells: readonly string[];
  readonly colour?: Colour | undefined;
  /** A line under the row, such as an error; indented and painted like the row. */
  readonly note?: string | undefined;
}

export interface TableOptions {
  readonly columns: number;
  readonly paint: Paint;
  /** Indexes of the columns with numbers, which are aligned at the right. */
  readonly right: readonly number[];
  /** Spaces before each row, so that rows stand under their title. */
  readonly indent?: number;
}

/** The heading first, then the rows; no line is wider than `columns`. */
export function renderTable(heads: readonly string[], rows: readonly TableRow[], options: TableOptions): string[] {
  const { columns, paint, right, indent = 0 } = options;
  const table = rows.map(({ cells }) => cells.map((cell, index) => (index === 0 ? ' '.repeat(indent) + cell : cell)));
  const widths = heads.map((head, index) => Math.max(width(head), ...table.map((cells) => width(cells[index] ?? ''))));
  const join = (cells: readonly string[]) => {
    const padded = cells.map((cell, index) => (right.includes(index) ? padStart : padEnd)(cell, widths[index] ?? 0));
    return cut(padded.join('  ').trimEnd(), columns);
  };
  const lines = table.flatMap((cells, index) => {
    const { colour, note } = rows[index] ?? {};
    const text = [join(cells), ...(note === undefined ? [] : [cut(`${' '.repeat(indent + 2)}${note}`, columns)])];
    return colour === undefined ? text : text.map((line) => paint(colour, line));
  });
  return [paint('bold', join(heads)), ...lines];
}

interface Output {
  readonly stdout: { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The options of a table on standard output: cut at a terminal's width, whole in a file. */
export function toTableOptions(io: Output, right: readonly number[]): TableOptions {
  const columns = io.stdout.isTTY === true ? (io.stdout.columns ?? 80) : Number.POSITIVE_INFINITY;
  return { columns, right, paint: openPaint(wantsColor(io.stdout, io.env)) };
}
