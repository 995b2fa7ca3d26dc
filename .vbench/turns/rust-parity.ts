// Hugging Face's tokenizers in Rust, through their Node.js binding, to compare with. It is not a dependency: install it in any folder
// (`npm install tokenizers`) and run `MILLRACE_RUST_TOKENIZERS=folder/node_modules/tokenizers npm run bench -- tokenizer`.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

interface RustTokenizer {
  encode(text: string, pair: null, options: { readonly addSpecialTokens: false }): Promise<{ getIds(): number[] }>;
}

export interface RustEncoder {
  readonly version: string;
  /** Runs in a thread of libuv's pool. */
  encode(text: string): Promise<number[]>;
}

/** Undefined without `MILLRACE_RUST_TOKENIZERS`. */
export function openRustEncoder(modelFolder: string): RustEncoder | undefined {
  const folder = process.env.MILLRACE_RUST_TOKENIZERS;
  if (folder === undefined) return undefined;
  const { Tokenizer }: { Tokenizer: { fromFile(path: string): RustTokenizer } } = createRequire(import.meta.url)(folder);
  const { version }: { version: string } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const tokenizer = Tokenizer.fromFile(join(modelFolder, 'tokenizer.json'));
  return { version, encode: async (text) => (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds() };
}
