// The tokenizer inside a GGUF file as the two files that our service reads: tokenizer.json and tokenizer_config.json with the chat
// template. For byte-level BPE, which is what SmolLM2, Qwen and Llama 3 have, and for Gemma 4's BPE with marks for spaces.

import { closeSync, mkdirSync, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const metadata = z.object({
  'tokenizer.ggml.model': z.enum(['gpt2', 'gemma4']),
  'tokenizer.ggml.tokens': z.array(z.string()),
  'tokenizer.ggml.merges': z.array(z.string()),
  /** 3 is a control token, 4 another added token. */
  'tokenizer.ggml.token_type': z.array(z.int()),
  'tokenizer.ggml.bos_token_id': z.int().optional(),
  'tokenizer.ggml.eos_token_id': z.int().optional(),
  'tokenizer.chat_template': z.string().optional(),
});

const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };

type Metadata = z.infer<typeof metadata>;

/** A GGUF file does not have the pre-tokenizer of its model; GPT-2's is the default. */
export function writeTokenizer(ggufPath: string, folder: string, preTokenizer: object = byteLevel): string {
  const read = metadata.parse(readGgufMetadata(ggufPath));
  const tokens = read['tokenizer.ggml.tokens'];
  const isGemma = read['tokenizer.ggml.model'] === 'gemma4';
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: findAdded(read, isGemma),
    ...(isGemma ? markedSpaces : { normalizer: null, pre_tokenizer: preTokenizer, decoder: byteLevel }),
    post_processor: null,
    model: {
      type: 'BPE',
      ...(isGemma ? { unk_token: '<unk>', fuse_unk: true, byte_fallback: true } : {}),
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: read['tokenizer.ggml.merges'].map((pair) => pair.split(' ')),
    },
  };
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    bos_token: tokens[read['tokenizer.ggml.bos_token_id'] ?? -1],
    eos_token: tokens[read['tokenizer.ggml.eos_token_id'] ?? -1],
    chat_template: read['tokenizer.chat_template'],
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
  return folder;
}

const markedSpaces = {
  normalizer: { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
  pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'MergedWithPrevious', invert: false },
  decoder: {
    type: 'Sequence',
    decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }],
  },
};

/** In byte-level vocabularies, other added tokens are left out: they fill the vocabulary. */
function findAdded(read: Metadata, hasOrdinary: boolean): object[] {
  const types = read['tokenizer.ggml.token_type'];
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  return read['tokenizer.ggml.tokens'].flatMap((content, id) => {
    const isControl = types[id] === 3;
    return isControl || (hasOrdinary && types[id] === 4) ? [{ id, content, ...flags, special: isControl }] : [];
  });
}

/** The head of a GGUF file: names with numbers, texts and lists of them. */
function readGgufMetadata(path: string): Record<string, unknown> {
  const reader = new Reader(readHead(path));
  if (reader.text(4) !== 'GGUF') throw new Error(`${path} is no GGUF file`);
  reader.number(4); // the format's version
  reader.long(); // how many tensors
  const count = reader.long();
  return Object.fromEntries(Array.from({ length: count }, () => [reader.string(), reader.value(reader.number(4))]));
}

/** Tokens and merges come before the weights, in the first megabytes. */
function readHead(path: string): Buffer {
  const bytes = Buffer.alloc(32 << 20);
  const file = openSync(path, 'r');
  try {
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(file);
  }
}

const integerBytes: Readonly<Record<number, number>> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 7: 1 };

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  value(type: number): unknown {
    const bytes = integerBytes[type];
    if (bytes !== undefined) return this.number(bytes);
    switch (type) {
      case 6:
        return this.#bytes.readFloatLE(this.#move(4));
      case 8:
        return this.string();
      case 9: {
        const [of, length] = [this.number(4), this.long()];
        return Array.from({ length }, () => this.value(of));
      }
      case 10:
      case 11:
        return this.long();
      case 12:
        return this.#bytes.readDoubleLE(this.#move(8));
      default:
        throw new Error(`a GGUF value of type ${type}`);
    }
  }

  number(bytes: number): number {
    return this.#bytes.readUIntLE(this.#move(bytes), bytes);
  }

  long(): number {
    return Number(this.#bytes.readBigUInt64LE(this.#move(8)));
  }

  string(): string {
    return this.text(this.long());
  }

  text(length: number): string {
    const at = this.#move(length);
    return this.#bytes.toString('utf8', at, at + length);
  }

  #move(by: number): number {
    this.#at += by;
    return this.#at - by;
  }
}
