// Text to token ids and back, from a model's own tokenizer.json. The control tokens of the vocabulary (turn marks, tool tags)
// are recognised only in text that is trusted; in all other text their spelling stays text.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { z } from 'zod';
import type { Steps } from '../../base/pace.ts';
import { type Bpe, openBpe } from './bpe.ts';
import { openPreTokens } from './pre-tokens.ts';

/** A stretch of text; only a trusted one may name control tokens. */
export interface TextPart {
  readonly text: string;
  readonly trusted: boolean;
}

/** What a conversation needs of a tokenizer, wherever that is. */
export interface PartTokenizer {
  /**
   * The ids of all parts as one text: tokens merge across the borders of parts, and no control token comes out of an untrusted
   * one. In steps of about a millisecond, so that others can have their turn between them.
   */
  encodeSteps(parts: readonly TextPart[]): Steps<Int32Array>;
  /** Control tokens as their text. Ids that are not in the vocabulary have no text. */
  decodeSteps(tokenIds: Int32Array): Steps<string>;
  /** Every id that ends a text, as the model's files say. */
  readonly eosIds: readonly number[];
  /** Tokens that steer, by their text: whatever the vocabulary adds that is not blank. */
  readonly controlTokens: readonly string[];
}

/** A tokenizer in this process, which needs to wait for nothing. */
export interface Tokenizer extends PartTokenizer {
  /** Control tokens in the text are recognised. No token is added before or after it. */
  encode(text: string): Int32Array;
  /** No control token comes out of it, whatever the text says. */
  encodePlain(text: string): Int32Array;
  /**
   * The ids of all parts as one text: tokens merge across the borders of parts, and where no untrusted part spells a control
   * token, they are the ids that `encode` gives for the joined text.
   */
  encodeParts(parts: readonly TextPart[]): Int32Array;
  /** Control tokens as their text. Ids that are not in the vocabulary have no text. */
  decode(tokenIds: ArrayLike<number>): string;
  /** The id of one whole token by its text. */
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

/** Reads tokenizer.json, tokenizer_config.json and, where there is one, generation_config.json. Throws an Error that names the folder. */
export async function openTokenizer(folder: string): Promise<Tokenizer> {
  try {
    const [file, config, generation] = await Promise.all([
      readJson(folder, 'tokenizer.json').then((json) => tokenizerFile.parse(json)),
      readJson(folder, 'tokenizer_config.json').then((json) => configFile.parse(json)),
      readJson(folder, 'generation_config.json').then(
        (json) => generationFile.parse(json),
        () => ({ eos_token_id: undefined }), // many folders have none, and nothing else is read from it
      ),
    ]);
    const eos = config.eos_token ? file.added_tokens.find(({ content }) => content === config.eos_token)?.id : undefined;
    const eosIds = new Set([eos ?? [], generation.eos_token_id ?? []].flat());
    return new AddedTokenTokenizer({ file, config, eosIds: [...eosIds] });
  } catch (error) {
    throw new Error(`no usable tokenizer in ${folder}: ${error instanceof Error ? error.message : error}`, { cause: error });
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

const longestRemembered = 16;
const mostRemembered = 1024;
/** Letters and pieces encoded in one step: about a millisecond. */
const workPerStep = 4096;

class AddedTokenTokenizer implements Tokenizer {
  readonly eosIds: readonly number[];
  readonly controlTokens: readonly string[];
  readonly #whole: HuggingFaceTokenizer;
  readonly #plain: HuggingFaceTokenizer;
  /** Where it can be done step by step; the library does the rest. */
  readonly #stepwise: { readonly bpe: Bpe; readonly cut: (text: string) => Iterable<string> } | undefined;
  readonly #control: ReadonlyMap<string, AddedToken>;
  readonly #controlPattern: RegExp;
  /** The template's own stretches between control tokens, which come again in every turn. */
  readonly #remembered = new Map<string, Int32Array>();

  constructor({ file, config, eosIds }: Files) {
    this.eosIds = eosIds;
    this.#whole = new HuggingFaceTokenizer(file, config);
    // Runs of spaces are added tokens in some vocabularies; they steer nothing, so plain text keeps them.
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
    if (text.length > longestRemembered) return yield* this.#plainSteps(text);
    const ids = this.#remembered.get(text) ?? this.encodePlain(text);
    if (this.#remembered.size < mostRemembered) this.#remembered.set(text, ids);
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

  // biome-ignore lint/correctness/useYield: it is short, and elsewhere it waits.
  *decodeSteps(tokenIds: Int32Array): Steps<string> {
    return this.decode(tokenIds);
  }

  idOf(text: string): number | undefined {
    return this.#whole.token_to_id(text);
  }
}

/** Stretches of plain text, each with the control token that ends it. */
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

/** Runs to the end without a pause; for steps that do not wait. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (value) throw new Error('these steps wait for something, and must be run by a Pace');
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

/** Splits at control tokens and keeps them; the longest wins where several begin at one place. */
export function toPattern(contents: readonly string[]): RegExp {
  if (contents.length === 0) return /(?!)/;
  const longestFirst = [...contents].sort((a, b) => b.length - a.length);
  return new RegExp(`(${longestFirst.map((content) => RegExp.escape(content)).join('|')})`);
}
