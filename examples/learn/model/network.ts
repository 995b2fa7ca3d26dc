// The policy: a small transformer over tokens. One function computes it for training (all tokens at once, with a tape) and for
// sampling (new tokens after a cache), so that both give the same numbers.

import { attend } from './attention.ts';
import { add, type Matrix, makeMatrix, multiply, normalize, pickLogprobs, pickRows, silu, type Tape } from './matrix.ts';
import type { Random } from './random.ts';

export interface Shape {
  readonly vocabulary: number;
  /** The longest context, in tokens. */
  readonly positions: number;
  readonly width: number;
  readonly heads: number;
  readonly layers: number;
}

interface Layer {
  readonly query: Matrix;
  readonly key: Matrix;
  readonly value: Matrix;
  readonly output: Matrix;
  readonly up: Matrix;
  readonly down: Matrix;
}

export interface Network {
  readonly shape: Shape;
  /** Also what the outputs are compared with. */
  readonly tokens: Matrix;
  readonly layers: readonly Layer[];
}

export function makeNetwork(shape: Shape, random: Random): Network {
  const { vocabulary, width, layers } = shape;
  const draw = (rows: number, cols: number, spread: number) =>
    makeMatrix(
      rows,
      cols,
      Float64Array.from({ length: rows * cols }, () => spread * random.normal()),
    );
  const spread = 1 / Math.sqrt(width);
  const small = spread / Math.sqrt(2 * layers);
  return {
    shape,
    tokens: draw(vocabulary, width, spread),
    layers: Array.from({ length: layers }, () => ({
      query: draw(width, width, spread),
      key: draw(width, width, spread),
      value: identity(draw(width, width, small)),
      output: identity(draw(width, width, small)),
      up: draw(2 * width, width, spread),
      down: draw(width, 2 * width, small),
    })),
  };
}

/** A head starts by copying what it attends to; where to attend is learned. */
function identity(matrix: Matrix): Matrix {
  for (let i = 0; i < matrix.rows; i++) matrix.data[i * matrix.cols + i] = 1 + (matrix.data[i * matrix.cols + i] ?? 0);
  return matrix;
}

/** Every weight, in a fixed order. */
export function weightsOf({ tokens, layers }: Network): readonly Matrix[] {
  return [tokens, ...layers.flatMap(({ query, key, value, output, up, down }) => [query, key, value, output, up, down])];
}

/** A deep copy, so that training does not change what is being served. */
export function copyNetwork(network: Network): Network {
  const copy = ({ rows, cols, data }: Matrix) => makeMatrix(rows, cols, Float64Array.from(data));
  const { shape, tokens, layers } = network;
  return {
    shape,
    tokens: copy(tokens),
    layers: layers.map(({ query, key, value, output, up, down }) => ({
      query: copy(query),
      key: copy(key),
      value: copy(value),
      output: copy(output),
      up: copy(up),
      down: copy(down),
    })),
  };
}

/** Keys and values of the tokens so far, layer by layer. */
export interface Cache {
  length: number;
  readonly layers: { keys: Matrix; values: Matrix }[];
}

export function openCache({ shape: { layers, width } }: Network): Cache {
  return { length: 0, layers: Array.from({ length: layers }, () => ({ keys: makeMatrix(0, width), values: makeMatrix(0, width) })) };
}

export interface ForwardOptions {
  readonly tape?: Tape;
  /** Read and extended by the given tokens. Cannot be combined with a tape. */
  readonly cache?: Cache;
}

/** One row for each token: the hidden state after it. */
export function forward(network: Network, tokenIds: ArrayLike<number>, { tape, cache }: ForwardOptions = {}): Matrix {
  const { heads, positions } = network.shape;
  const before = cache?.length ?? 0;
  if (before + tokenIds.length > positions) throw new RangeError(`${before + tokenIds.length} tokens in a context of ${positions}`);
  let x = pickRows(network.tokens, tokenIds, tape);
  network.layers.forEach((layer, index) => {
    const seen = normalize(x, tape);
    const queries = multiply(seen, layer.query, tape);
    const fresh = { keys: multiply(seen, layer.key, tape), values: multiply(seen, layer.value, tape) };
    const { keys, values } = cache ? growCache(cache, index, fresh) : fresh;
    x = add(x, multiply(attend({ queries, keys, values, heads }, tape), layer.output, tape), tape);
    x = add(x, multiply(silu(multiply(normalize(x, tape), layer.up, tape), tape), layer.down, tape), tape);
  });
  if (cache) cache.length += tokenIds.length;
  return normalize(x, tape);
}

/** The logits of the next token for the given rows of the output of `forward`. */
export function toLogits(network: Network, outputs: Matrix, tape?: Tape): Matrix {
  return multiply(outputs, network.tokens, tape);
}

/** The log-probabilities of the tokens at `places`, each given all tokens before it. */
export function logprobsAt(network: Network, tokenIds: ArrayLike<number>, options: { places: readonly number[]; tape?: Tape }): Matrix {
  const { places, tape } = options;
  const outputs = forward(network, tokenIds, tape ? { tape } : {});
  const rows = pickRows(
    outputs,
    places.map((place) => place - 1),
    tape,
  );
  const wanted = places.map((place) => tokenIds[place] ?? 0);
  return pickLogprobs(toLogits(network, rows, tape), wanted, tape);
}

function growCache(cache: Cache, index: number, fresh: { keys: Matrix; values: Matrix }): { keys: Matrix; values: Matrix } {
  const old = cache.layers[index] ?? fresh;
  const grown = { keys: below(old.keys, fresh.keys), values: below(old.values, fresh.values) };
  cache.layers[index] = grown;
  return grown;
}

function below(a: Matrix, b: Matrix): Matrix {
  const data = new Float64Array(a.data.length + b.data.length);
  data.set(a.data);
  data.set(b.data, a.data.length);
  return makeMatrix(a.rows + b.rows, b.cols, data);
}
