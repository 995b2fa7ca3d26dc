// The fake backend's own view of a vocabulary, apart from the service's, so that the two check each other.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { qwen3Folder } from '../models/qwen3.ts';

export interface FakeTokens {
  encode(text: string): Int32Array;
  /** As llama.cpp does it: what is marked as special stays text, but other added tokens are recognised all the same. */
  encodeWithoutSpecial(text: string): Int32Array;
  /** What tokenizer_config.json says. */
  readonly config: Readonly<Record<string, unknown>>;
  decode(tokenIds: ArrayLike<number>): string;
  /** The id that ends a turn. */
  readonly endOfTurnId: number;
  /** The ids with which an assistant's turn begins. */
  readonly assistantStart: Int32Array;
}

/** Reads a folder with tokenizer.json and tokenizer_config.json of a model with ChatML turns; Qwen3 where none is given. */
export async function openFakeTokens(folder: string = qwen3Folder()): Promise<FakeTokens> {
  const [file, config] = await Promise.all(
    ['tokenizer.json', 'tokenizer_config.json'].map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8'))),
  );
  const tokenizer = new Tokenizer(file, config);
  const added: readonly { readonly special: boolean }[] = file.added_tokens;
  let withoutSpecial: Tokenizer | undefined; // few ask, and it takes a while
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

/** Where in a prompt the assistant's turns begin: the places right behind each start, the last being the one to be sampled. */
export function findAssistantStarts(promptIds: Int32Array, { assistantStart }: FakeTokens): number[] {
  const starts: number[] = [];
  const [first] = assistantStart;
  if (first === undefined) return starts;
  for (let at = promptIds.indexOf(first); at >= 0; at = promptIds.indexOf(first, at + 1)) {
    if (assistantStart.every((id, i) => promptIds[at + i] === id)) starts.push(at + assistantStart.length);
  }
  return starts;
}
