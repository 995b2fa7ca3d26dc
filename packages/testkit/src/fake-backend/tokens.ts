// The fake backend's own tokenizer, separate from the service's, so that each checks the other.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { qwen3Folder } from '../models/qwen3.ts';

export interface FakeTokens {
  encode(text: string): Int32Array;
  /** As llama.cpp does it: special tokens stay text, but other added tokens are recognized. */
  encodeWithoutSpecial(text: string): Int32Array;
  /** The content of tokenizer_config.json. */
  readonly config: Readonly<Record<string, unknown>>;
  decode(tokenIds: ArrayLike<number>): string;
  /** The id that ends a turn. */
  readonly endOfTurnId: number;
  /** The ids at the start of an assistant's turn. */
  readonly assistantStart: Int32Array;
}

/** Reads the tokenizer.json and tokenizer_config.json of a model with ChatML turns; Qwen3 by default. */
export async function openFakeTokens(folder: string = qwen3Folder()): Promise<FakeTokens> {
  const [file, config] = await Promise.all(
    ['tokenizer.json', 'tokenizer_config.json'].map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8'))),
  );
  const tokenizer = new Tokenizer(file, config);
  const added: readonly { readonly special: boolean }[] = file.added_tokens;
  let withoutSpecial: Tokenizer | undefined; // rarely needed, and slow to make
  const openWithoutSpecial = () => new Tokenizer({ ...file, added_tokens: added.filter(({ special }) => !special) }, config);
  const encodeWith = (encoder: Tokenizer, text: string) =>
    text === '' ? new Int32Array(0) : Int32Array.from(encoder.encode(text, { add_special_tokens: false }).ids);
  const encode = (text: string) => encodeWith(tokenizer, text);
  const [endOfTurnId] = encode('<|im_end|>');
  if (endOfTurnId === undefined) throw new Error(`${folder} has no <|im_end|>`);
  return {
    encode,
    encodeWithoutSpecial(text) {
      withoutSpecial ??= openWithoutSpecial();
      return encodeWith(withoutSpecial, text);
    },
    config,
    decode: (tokenIds) =>
      tokenIds.length === 0
        ? ''
        : tokenizer.decode(Array.from(tokenIds), { skip_special_tokens: false, clean_up_tokenization_spaces: false }),
    endOfTurnId,
    assistantStart: encode('<|im_start|>assistant\n'),
  };
}

/** The positions at which the assistant's turns start, right after each marker. The last one is the turn to be sampled. */
export function findAssistantStarts(promptIds: Int32Array, { assistantStart }: FakeTokens): number[] {
  const starts: number[] = [];
  const [first] = assistantStart;
  if (first === undefined) return starts;
  for (let at = promptIds.indexOf(first); at >= 0; at = promptIds.indexOf(first, at + 1)) {
    if (assistantStart.every((id, i) => promptIds[at + i] === id)) starts.push(at + assistantStart.length);
  }
  return starts;
}
