// Causal multi-head attention, forward and backward. Each head has its own distance penalty (ALiBi), so no positions are learned. A cache
// holds the keys and values of earlier tokens, so that sampling a token does not recompute its prefix.

import { addScaled, dot, type Matrix, makeMatrix, type Tape } from './matrix.ts';

export interface AttentionInput {
  readonly queries: Matrix;
  /** Keys and values of all tokens so far; the queries belong to the last ones. */
  readonly keys: Matrix;
  readonly values: Matrix;
  readonly heads: number;
}

export function attend({ queries, keys, values, heads }: AttentionInput, tape?: Tape): Matrix {
  const { rows, cols } = queries;
  const before = keys.rows - rows;
  const n = cols / heads;
  const out = makeMatrix(rows, cols);
  const shares: Float64Array[] = [];
  for (let i = 0; i < rows; i++) {
    for (let from = 0; from < cols; from += n) {
      const share = toShares(queries, keys, { i, from, n, seen: before + i + 1 });
      share.forEach((part, j) => {
        addScaled(out.data, i * cols + from, { other: values.data, from: j * cols + from, n, scale: part });
      });
      shares.push(share);
    }
  }
  tape?.note(() => {
    for (let i = 0; i < rows; i++) {
      for (let head = 0; head < heads; head++) {
        const share = shares[i * heads + head] ?? new Float64Array(0);
        goBack({ queries, keys, values, out, share }, { i, from: head * n, n });
      }
    }
  });
  return out;
}

interface Place {
  readonly i: number;
  readonly from: number;
  readonly n: number;
}

/** The attention weights of one head for token i over the tokens up to it. Distance is penalised, most in the first head. */
function toShares(queries: Matrix, keys: Matrix, { i, from, n, seen }: Place & { readonly seen: number }): Float64Array {
  const { cols } = queries;
  const shares = new Float64Array(seen);
  const scale = 1 / Math.sqrt(n);
  const slope = 2 ** -(from / n);
  let top = Number.NEGATIVE_INFINITY;
  for (let j = 0; j < seen; j++) {
    const score = scale * dot(queries.data, i * cols + from, { other: keys.data, from: j * cols + from, n }) - slope * (seen - 1 - j);
    shares[j] = score;
    top = Math.max(top, score);
  }
  let sum = 0;
  for (let j = 0; j < seen; j++) {
    const weight = Math.exp((shares[j] ?? 0) - top);
    shares[j] = weight;
    sum += weight;
  }
  for (let j = 0; j < seen; j++) shares[j] = (shares[j] ?? 0) / sum;
  return shares;
}

interface Done {
  readonly queries: Matrix;
  readonly keys: Matrix;
  readonly values: Matrix;
  readonly out: Matrix;
  readonly share: Float64Array;
}

function goBack({ queries, keys, values, out, share }: Done, { i, from, n }: Place): void {
  const { cols } = queries;
  const here = i * cols + from;
  const scale = 1 / Math.sqrt(n);
  const mean = dot(out.grad, here, { other: out.data, from: here, n });
  share.forEach((part, j) => {
    const there = j * cols + from;
    addScaled(values.grad, there, { other: out.grad, from: here, n, scale: part });
    const slope = part * (dot(out.grad, here, { other: values.data, from: there, n }) - mean) * scale;
    addScaled(queries.grad, here, { other: keys.data, from: there, n, scale: slope });
    addScaled(keys.grad, there, { other: queries.data, from: here, n, scale: slope });
  });
}
