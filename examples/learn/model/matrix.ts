// Matrices with gradients: each operation computes its result and, if given a tape, records its backward step. Rows are computed in a
// fixed order, so that a sequence computed token by token is bit-identical to one computed at once.

export interface Matrix {
  readonly rows: number;
  readonly cols: number;
  readonly data: Float64Array;
  /** The loss's derivative by each number; filled by `Tape.back`. */
  readonly grad: Float64Array;
}

export function makeMatrix(rows: number, cols: number, data: Float64Array = new Float64Array(rows * cols)): Matrix {
  return { rows, cols, data, grad: new Float64Array(rows * cols) };
}

/** Recorded operations, to be played backward once. */
export class Tape {
  readonly #steps: (() => void)[] = [];

  note(step: () => void): void {
    this.#steps.push(step);
  }

  back(): void {
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) step();
  }
}

const at = (numbers: Float64Array, index: number): number => numbers[index] ?? 0;

/** The given rows of a table, as an embedding looks them up. */
export function pickRows(table: Matrix, rows: ArrayLike<number>, tape?: Tape): Matrix {
  const { cols } = table;
  const out = makeMatrix(rows.length, cols);
  for (let i = 0; i < rows.length; i++) out.data.set(rowOf(table.data, rows[i] ?? 0, cols), i * cols);
  tape?.note(() => {
    for (let i = 0; i < rows.length; i++) addTo(rowOf(table.grad, rows[i] ?? 0, cols), rowOf(out.grad, i, cols));
  });
  return out;
}

export function add(a: Matrix, b: Matrix, tape?: Tape): Matrix {
  const out = makeMatrix(a.rows, a.cols, Float64Array.from(a.data));
  addTo(out.data, b.data);
  tape?.note(() => {
    addTo(a.grad, out.grad);
    addTo(b.grad, out.grad);
  });
  return out;
}

/** `a` times the transpose of `w`: each row of `w` is one output. */
export function multiply(a: Matrix, w: Matrix, tape?: Tape): Matrix {
  const out = makeMatrix(a.rows, w.rows);
  for (let i = 0; i < a.rows; i++) multiplyRow(a, w, { out, i });
  tape?.note(() => {
    for (let i = 0; i < a.rows; i++) multiplyRowBack(a, w, { out, i });
  });
  return out;
}

function multiplyRow({ data: x, cols }: Matrix, { data: w, rows }: Matrix, { out, i }: { readonly out: Matrix; readonly i: number }): void {
  const y = out.data;
  const start = i * cols;
  for (let j = 0; j < rows; j++) {
    const from = j * cols;
    let sum = 0;
    for (let k = 0; k < cols; k++) sum += at(x, start + k) * at(w, from + k);
    y[i * rows + j] = sum;
  }
}

function multiplyRowBack(a: Matrix, w: Matrix, { out, i }: { readonly out: Matrix; readonly i: number }): void {
  const { cols, data: x, grad: dx } = a;
  const { rows, data: v, grad: dv } = w;
  const start = i * cols;
  for (let j = 0; j < rows; j++) {
    const slope = at(out.grad, i * rows + j);
    if (slope === 0) continue;
    const from = j * cols;
    for (let k = 0; k < cols; k++) {
      dx[start + k] = at(dx, start + k) + slope * at(v, from + k);
      dv[from + k] = at(dv, from + k) + slope * at(x, start + k);
    }
  }
}

/** Each row divided by its root mean square. */
export function normalize(a: Matrix, tape?: Tape): Matrix {
  const { rows, cols: n } = a;
  const out = makeMatrix(rows, n);
  const scales = Float64Array.from({ length: rows }, (_, i) => {
    const square = dot(a.data, i * n, { other: a.data, from: i * n, n });
    return 1 / Math.sqrt(square / n + 1e-6);
  });
  for (let i = 0; i < rows; i++) addScaled(out.data, i * n, { other: a.data, from: i * n, n, scale: at(scales, i) });
  tape?.note(() => {
    for (let i = 0; i < rows; i++) {
      const scale = at(scales, i);
      const along = dot(out.grad, i * n, { other: out.data, from: i * n, n });
      addScaled(a.grad, i * n, { other: out.grad, from: i * n, n, scale });
      addScaled(a.grad, i * n, { other: out.data, from: i * n, n, scale: (-scale * along) / n });
    }
  });
  return out;
}

/** x · sigmoid(x), number by number. */
export function silu(a: Matrix, tape?: Tape): Matrix {
  const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
  const out = makeMatrix(
    a.rows,
    a.cols,
    a.data.map((x) => x * sigmoid(x)),
  );
  tape?.note(() => {
    for (let i = 0; i < a.data.length; i++) {
      const [x, s] = [at(a.data, i), sigmoid(at(a.data, i))];
      a.grad[i] = at(a.grad, i) + at(out.grad, i) * (s + x * s * (1 - s));
    }
  });
  return out;
}

/** The log-probability of `ids[i]` under the softmax of row i. */
export function pickLogprobs(logits: Matrix, ids: ArrayLike<number>, tape?: Tape): Matrix {
  const { rows, cols } = logits;
  const out = makeMatrix(rows, 1);
  const probs = new Float64Array(logits.data.length);
  for (let i = 0; i < rows; i++) {
    const row = logSoftmax(rowOf(logits.data, i, cols));
    out.data[i] = at(row, ids[i] ?? 0);
    for (let j = 0; j < cols; j++) probs[i * cols + j] = Math.exp(at(row, j));
  }
  tape?.note(() => {
    for (let i = 0; i < rows; i++) {
      const grad = at(out.grad, i);
      addScaled(logits.grad, i * cols, { other: probs, from: i * cols, n: cols, scale: -grad });
      const picked = i * cols + (ids[i] ?? 0);
      logits.grad[picked] = at(logits.grad, picked) + grad;
    }
  });
  return out;
}

export function logSoftmax(row: Float64Array): Float64Array {
  let top = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < row.length; i++) top = Math.max(top, at(row, i));
  let sum = 0;
  for (let i = 0; i < row.length; i++) sum += Math.exp(at(row, i) - top);
  const log = top + Math.log(sum);
  return row.map((value) => value - log);
}

export interface Span {
  readonly other: Float64Array;
  readonly from: number;
  readonly n: number;
}

export function dot(a: Float64Array, start: number, { other, from, n }: Span): number {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += at(a, start + i) * at(other, from + i);
  return sum;
}

export function addScaled(a: Float64Array, start: number, { other, from, n, scale }: Span & { readonly scale: number }): void {
  for (let i = 0; i < n; i++) a[start + i] = at(a, start + i) + scale * at(other, from + i);
}

function addTo(a: Float64Array, b: Float64Array): void {
  for (let i = 0; i < b.length; i++) a[i] = at(a, i) + at(b, i);
}

function rowOf(data: Float64Array, row: number, cols: number): Float64Array {
  return data.subarray(row * cols, (row + 1) * cols);
}
