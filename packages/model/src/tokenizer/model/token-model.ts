// What turns a piece of pre-tokenised text into ids.

import type { Steps } from '@millrace/base/pace';

/** Which symbols a piece is made of: the bytes of its UTF-8 form, or its characters. */
export type SymbolUnit = 'bytes' | 'characters';

export interface TokenModel {
  /** The ids of a piece if they are cached. */
  known(piece: string): Int32Array | undefined;
  /** The ids of one piece. A long piece takes several steps. */
  encode(piece: string): Steps<Int32Array>;
  /** Splits a piece where no token can cross, if there are such places. Yields undefined when a step is over. */
  readonly cut?: ((piece: string) => Iterable<string | undefined>) | undefined;
}

export interface TokenModelOptions {
  readonly unit: SymbolUnit;
  /** The id of each token of the model. */
  readonly vocab: ReadonlyMap<string, number>;
  /** No text ever becomes one of these tokens. */
  readonly reserved: ReadonlySet<number>;
}
