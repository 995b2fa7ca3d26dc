// Text to token ids and back, with a model's own tokenizer.json. Control tokens of the vocabulary (turn marks, tool tags) are
// recognised only in trusted text; anywhere else their spelling stays plain text.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { messageOf } from '@millrace/protocol';
import { z } from 'zod';
import type { Steps } from '../../base/pace.ts';
import { type Bpe, openBpe } from './bpe.ts';
import { openPreTokens } from './pre-tokens.ts';

/** A piece of text. Control tokens are recognised only if it is trusted. */
export interface TextPart {
  readonly text: string;
  readonly trusted: boolean;
}

/** What a conversation needs from a tokenizer, local or remote. */
export interface PartTokenizer {
  /**
   * The ids of all parts as one text. Tokens merge across the borders of parts, and an untrusted part never yields a control token.
   * Runs in steps of about a millisecond, so that other work can run in between.
   */
  encodeSteps(parts: readonly TextPart[]): Steps<Int32Array>;
  /** Control tokens become their text. Ids that are not in the vocabulary have no text. */
  decodeSteps(tokenIds: Int32Array): Steps<string>;
  /** Every id that ends a text, according to the model's files. */
  readonly eosIds: readonly number[];
  /** The texts of all added tokens that are not blank. */
  readonly controlTokens: readonly string[];
}

/** A tokenizer in this process; it never waits. */
export interface Tokenizer extends PartTokenizer {
  /** Control tokens in the text are recognised. No token is added before or after the text. */
  encode(text: string): Int32Array;
  /** Never yields a control token. */
  encodePlain(text: string): Int32Array;
  /**
   * The ids of all parts as one text. Tokens merge across the borders of parts. If no untrusted part spells a control token, the ids
   * are those that `encode` gives for the joined text.
   */
  encodeParts(parts: readonly TextPart[]): Int32Array;
  /** Control tokens become their text. Ids that are not in the vocabulary have no text. */
  decode(tokenIds: ArrayLike<number>): string;
  /** The id of the token with this text. */
  idOf(tokenText: string): number | undefined;
}

const tokenText = z.union([z.string(), z.object({ content: z.string() }).transform(({ content }) => content)]);
const addedToken = z.looseObject({
  id: z.int(),
  content: z.string().min(1),
  lstrip: z.boolean().default(false),
  rstrip: z.boolean().default(false),
});
type AddedToken = z.infer<typeof addedToken>;
export type ControlToken = Pick<AddedToken, 'id' | 'lstrip' | 'rstrip'>;

const tokenizerFile = z.looseObject({ added_tokens: z.array(addedToken).default([]), model: z.unknown(), pre_tokenizer: z.unknown() });
const configFile = z.looseObject({
  eos_token: tokenText.nullish(),
  remove_space: z.boolean().nullish(),
  do_lowercase_and_remove_accent: z.boolean().nullish(),
});
const generationFile = z.looseObject({ eos_token_id: z.union([z.int(), z.array(z.int())]).nullish() });

/** Reads tokenizer.json, tokenizer_config.json and, if present, generation_config.json. Throws an Error that names the folder. */
export async function openTokenizer(folder: string): Promise<Tokenizer> {
  try {
    const [file, config, generation] = await Promise.all([
      readJson(folder, 'tokenizer.json').then((json) => tokenizerFile.parse(json)),
      readJson(folder, 'tokenizer_config.json').then((json) => configFile.parse(json)),
      readJson(folder, 'generation_config.json').then(
        (json) => generationFile.parse(json),
        () => ({ eos_token_id: undefined }), // optional: only this field is read from it
      ),
    ]);
    const eos = config.eos_token ? file.added_tokens.find(({ content }) => content === config.eos_token)?.id : undefined;
    const eosIds = new Set([eos ?? [], generation.eos_token_id ?? []].flat());
    return new AddedTokenTokenizer({ file, config, eosIds: [...eosIds] });
  } catch (error) {
    throw new Error(`no usable tokenizer in ${folder}: ${messageOf(error)}`, { cause: error });
  }
}

async function readJson(folder: string, name: string): Promise<unknown> {
  return JSON.parse(await readFile(join(folder, name), 'utf8'));
}

interface Files {
  readonly file: z.infer<typeof tokenizerFile>;
  readonly config: z.infer<typeof configFile>;
  readonly eosIds: readonly number[];
}

const maxCachedLength = 16;
const maxCached = 1024;
/** The work of one step, in characters and pieces: about a millisecond. */
const workPerStep = 4096;

class AddedTokenTokenizer implements Tokenizer {
  readonly eosIds: readonly number[];
  readonly controlTokens: readonly string[];
  readonly #whole: HuggingFaceTokenizer;
  readonly #plain: HuggingFaceTokenizer;
  /** Our own byte-level BPE, which runs in steps; undefined for vocabularies that are left to the library. */
  readonly #stepwise: { readonly bpe: Bpe; readonly cut: (text: string) => Iterable<string> } | undefined;
  readonly #control: ReadonlyMap<string, AddedToken>;
  readonly #controlPattern: RegExp;
  /** The template's texts between control tokens, which repeat in every turn. */
  readonly #cache = new Map<string, Int32Array>();

  constructor({ file, config, eosIds }: Files) {
    this.eosIds = eosIds;
    this.#whole = new HuggingFaceTokenizer(file, config);
    // In some vocabularies runs of spaces are added tokens. They control nothing, so plain text may contain them.
    const blank = file.added_tokens.filter(({ content }) => content.trim() === '');
    this.#plain = new HuggingFaceTokenizer({ ...file, added_tokens: blank, model: { type: 'BPE', vocab: {}, merges: [] } }, config);
    this.#plain.model = this.#whole.model;
    const control = file.added_tokens.filter(({ content }) => content.trim() !== '');
    this.#control = new Map(control.map((token) => [token.content, token]));
    this.controlTokens = [...this.#control.keys()];
    this.#controlPattern = toPattern(this.controlTokens);
    const isPlain = blank.length === 0 && !config.remove_space && !config.do_lowercase_and_remove_accent;
    const cut = isPlain ? openPreTokens(file.pre_tokenizer, this.#plain.pre_tokenizer) : undefined;
    const bpe = cut ? openBpe(file.model, new Set(this.controlTokens)) : undefined;
    this.#stepwise = bpe && cut ? { bpe, cut } : undefined;
  }

  encode(text: string): Int32Array {
    return encodeWith(this.#whole, text);
  }

  encodePlain(text: string): Int32Array {
    return runSteps(this.#plainSteps(text));
  }

  encodeParts(parts: readonly TextPart[]): Int32Array {
    return runSteps(this.encodeSteps(parts));
  }

  *encodeSteps(parts: readonly TextPart[]): Steps<Int32Array> {
    const stretches = splitParts(parts, { control: this.#control, pattern: this.#controlPattern });
    const encoded: Int32Array[] = [];
    for (const { text, id } of stretches) {
      encoded.push(yield* this.#stretchSteps(text));
      if (id !== undefined) encoded.push(Int32Array.of(id));
    }
    return joinIds(encoded);
  }

  *#stretchSteps(text: string): Steps<Int32Array> {
    if (text.length > maxCachedLength) return yield* this.#plainSteps(text);
    const ids = this.#cache.get(text) ?? this.encodePlain(text);
    if (this.#cache.size < maxCached) this.#cache.set(text, ids);
    return ids;
  }

  *#plainSteps(text: string): Steps<Int32Array> {
    if (!this.#stepwise) return encodeWith(this.#plain, text);
    const { bpe, cut } = this.#stepwise;
    const { normalizer } = this.#plain;
    const normal = normalizer === null ? text : normalizer(text);
    const encoded: Int32Array[] = [];
    let work = 0;
    for (const piece of cut(normal)) {
      encoded.push(yield* bpe.encode(piece));
      work += 16 + piece.length;
      if (work < workPerStep) continue;
      work = 0;
      yield;
    }
    return joinIds(encoded);
  }

  decode(tokenIds: ArrayLike<number>): string {
    const known = Array.from(tokenIds).filter((id) => this.#whole.id_to_token(id) !== undefined);
    if (known.length === 0) return '';
    return this.#whole.decode(known, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
  }

  // biome-ignore lint/correctness/useYield: decoding is short here, and waits only in the remote tokenizer.
  *decodeSteps(tokenIds: Int32Array): Steps<string> {
    return this.decode(tokenIds);
  }

  idOf(text: string): number | undefined {
    return this.#whole.token_to_id(text);
  }
}

/** The plain texts between control tokens, each with the id of the control token that ends it. */
export function* splitParts(
  parts: readonly TextPart[],
  { control, pattern }: { control: ReadonlyMap<string, ControlToken>; pattern: RegExp },
): Generator<{ readonly text: string; readonly id?: number }> {
  let pending = '';
  let trimNext = false;
  for (const { text, trusted } of parts) {
    for (const piece of trusted ? text.split(pattern) : [text]) {
      const token = trusted ? control.get(piece) : undefined;
      if (!token) {
        pending += piece;
        continue;
      }
      const stretch = trimNext ? pending.trimStart() : pending;
      yield { text: token.lstrip ? stretch.trimEnd() : stretch, id: token.id };
      pending = '';
      trimNext = token.rstrip;
    }
  }
  yield { text: trimNext ? pending.trimStart() : pending };
}

/** Runs all steps at once; for steps that do not wait. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (value) throw new Error('these steps wait for something: run them with a Pace');
  }
}

export function joinIds(encoded: readonly Int32Array[]): Int32Array {
  const joined = new Int32Array(encoded.reduce((sum, ids) => sum + ids.length, 0));
  let at = 0;
  for (const ids of encoded) {
    joined.set(ids, at);
    at += ids.length;
  }
  return joined;
}

function encodeWith(tokenizer: HuggingFaceTokenizer, text: string): Int32Array {
  if (text === '') return new Int32Array(0);
  return Int32Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids);
}

/** Splits at control tokens and keeps them; the longest one wins if several start at the same position. */
export function toPattern(contents: readonly string[]): RegExp {
  if (contents.length === 0) return /(?!)/;
  const longestFirst = [...contents].sort((a, b) => b.length - a.length);
  return new RegExp(`(${longestFirst.map((content) => RegExp.escape(content)).join('|')})`);
}
