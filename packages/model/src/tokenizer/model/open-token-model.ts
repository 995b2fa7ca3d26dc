// Opens the `model` of a tokenizer.json.

import { z } from 'zod';
import { openBpe } from './bpe.ts';
import type { TokenModel, TokenModelOptions } from './token-model.ts';
import { openUnigram } from './unigram.ts';

/** Throws an Error that names the feature that is not supported. */
export function openTokenModel(model: unknown, options: TokenModelOptions): TokenModel {
  const type = z.looseObject({ type: z.string().default('BPE') }).parse(model).type;
  switch (type) {
    case 'BPE':
      return openBpe(model, options);
    case 'Unigram':
      return openUnigram(model, options);
    default:
      throw new Error(`its model is of type ${type}; supported are BPE and Unigram`);
  }
}
