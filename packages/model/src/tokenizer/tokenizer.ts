// Text to token ids and back, with a model's own files. Control tokens of the vocabulary (turn marks, tool tags) are recognised only in
// trusted text; anywhere else their spelling stays plain text.

import type { Steps } from '@millrace/base/pace';
import { type AddedToken, type ControlToken, isControl, OrdinaryTokens, splitParts, type TextPart, toPattern } from './added-tokens.ts';
import { type Decoder, openDecoder } from './decoders.ts';
import { IdList } from './model/id-list.ts';
import { openTokenModel } from './model/open-token-model.ts';
import type { TokenModel } from './model/token-model.ts';
import { type Normalizer, openNormalizer } from './split/normalizers.ts';
import { openPreTokens, type PreTokens } from './split/pre-tokens.ts';
import type { Pieces } from './split/splits.ts';
import { readTokenizerFiles, type TokenizerFiles } from './tokenizer-files.ts';

export interface EncodeOptions {
  /** Whether other tokens come before the text. Some vocabularies mark the start of a text. */
  readonly isContinued?: boolean;
}

/** What a conversation needs from a tokenizer, local or remote. */
export interface PartTokenizer {
  /**
   * The ids of all parts as one text. Tokens merge across the borders of parts, and an untrusted part never yields a control token.
   * Runs in steps of about a millisecond, so that other work can run in between.
   */
  encodeSteps(parts: readonly TextPart[], options?: EncodeOptions): Steps<Int32Array>;
  /** Control tokens become their text. Ids that are not in the vocabulary have no text. */
  decodeSteps(tokenIds: Int32Array): Steps<string>;
  /** Every id that ends a text, according to the model's files. */
  readonly eosIds: readonly number[];
  /** The texts of all control tokens. */
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
  encodeParts(parts: readonly TextPart[], options?: EncodeOptions): Int32Array;
  /** Control tokens become their text. Ids that are not in the vocabulary have no text. */
  decode(tokenIds: ArrayLike<number>): string;
  /** The id of the token with this text. */
  idOf(tokenText: string): number | undefined;
}

/** Reads the tokenizer of a model's folder. Throws an Error that names the folder, what is missing, and what to do. */
export async function openTokenizer(folder: string): Promise<Tokenizer> {
  const files = await readTokenizerFiles(folder);
  try {
    return new FileTokenizer(files);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `the tokenizer in ${folder} cannot be used: ${why}. Set model.tokenizer to the address of a backend that serves the model instead`,
      { cause: error },
    );
  }
}

const maxCachedLength = 16;
const maxCached = 1024;
/** The work of one step, in characters and pieces: about a millisecond. */
const workPerStep = 4096;
/** Stretches between added tokens, most of them short. */
const stretchesPerStep = 64;

class FileTokenizer implements Tokenizer {
  readonly eosIds: readonly number[];
  readonly controlTokens: readonly string[];
  readonly #control: ReadonlyMap<string, ControlToken>;
  readonly #controlPattern: RegExp;
  /** Ordinary added tokens: those looked for in the text as it is, and those looked for in the normalised text. */
  readonly #raw: OrdinaryTokens;
  readonly #normalized: OrdinaryTokens;
  readonly #normalizer: Normalizer;
  readonly #preTokens: PreTokens;
  readonly #model: TokenModel;
  readonly #decoder: Decoder;
  readonly #vocab: ReadonlyMap<string, number>;
  readonly #added: ReadonlyMap<string, number>;
  /** The text of each id. */
  readonly #texts: readonly (string | undefined)[];
  /** The template's texts between control tokens, which repeat in every turn. */
  readonly #cache = new Map<string, Int32Array>();

  constructor({ added, normalizer, preTokenizer, model, decoder, vocab, eosIds }: TokenizerFiles) {
    this.eosIds = eosIds;
    const control = added.filter(isControl);
    this.#control = new Map(control.map((token) => [token.content, token]));
    this.controlTokens = [...this.#control.keys()];
    this.#controlPattern = toPattern(this.controlTokens);
    this.#normalizer = openNormalizer(normalizer);
    const { run } = this.#normalizer;
    const ordinary = added.filter((token) => !isControl(token));
    this.#raw = new OrdinaryTokens(ordinary.filter(({ normalized }) => !normalized));
    this.#normalized = new OrdinaryTokens(
      ordinary.filter(({ normalized }) => normalized).map((token) => ({ ...token, content: run(token.content) })),
    );
    refuseChanged(control, run);
    this.#preTokens = openPreTokens(preTokenizer);
    this.#model = openTokenModel(model, { unit: this.#preTokens.unit, vocab, reserved: new Set(control.map(({ id }) => id)) });
    this.#decoder = openDecoder(decoder);
    this.#vocab = vocab;
    this.#added = new Map(added.map(({ content, id }) => [content, id]));
    this.#texts = listTexts(vocab, this.#added);
  }

  encode(text: string): Int32Array {
    return this.encodeParts([{ text, trusted: true }]);
  }

  encodePlain(text: string): Int32Array {
    return this.encodeParts([{ text, trusted: false }]);
  }

  encodeParts(parts: readonly TextPart[], options: EncodeOptions = {}): Int32Array {
    return runSteps(this.encodeSteps(parts, options));
  }

  *encodeSteps(parts: readonly TextPart[], { isContinued = false }: EncodeOptions = {}): Steps<Int32Array> {
    const out = new IdList();
    let isStart = !isContinued;
    let stretches = 0;
    for (const { text, id } of splitParts(parts, { control: this.#control, pattern: this.#controlPattern })) {
      if (++stretches % stretchesPerStep === 0) yield;
      yield* this.#appendStretch(out, text, isStart);
      if (id !== undefined) out.push(id);
      isStart = false;
    }
    return out.toIds();
  }

  *#appendStretch(out: IdList, text: string, isStart: boolean): Steps<void> {
    if (text === '') return;
    if (isStart || text.length > maxCachedLength) return yield* this.#appendPlain(out, text, isStart);
    let ids = this.#cache.get(text);
    if (!ids) {
      const list = new IdList();
      yield* this.#appendPlain(list, text, false);
      ids = list.toIds();
      if (this.#cache.size < maxCached) this.#cache.set(text, ids);
    }
    out.append(ids);
  }

  /** A text without control tokens. */
  *#appendPlain(out: IdList, text: string, isStart: boolean): Steps<void> {
    let isFirst = isStart;
    let stretches = 0;
    for (const raw of splitOrdinary(this.#raw, text.toWellFormed())) {
      if (raw === undefined || ++stretches % stretchesPerStep === 0) yield;
      if (raw === undefined) continue;
      const normal = raw.text === '' ? '' : yield* this.#normalizer.steps(raw.text);
      for (const stretch of splitOrdinary(this.#normalized, normal)) {
        if (stretch === undefined || ++stretches % stretchesPerStep === 0) yield;
        if (stretch === undefined) continue;
        if (stretch.text !== '') yield* this.#appendPieces(out, stretch.text, isFirst);
        if (stretch.id !== undefined) out.push(stretch.id);
        isFirst = false;
      }
      if (raw.id !== undefined) out.push(raw.id);
    }
  }

  *#appendPieces(out: IdList, text: string, isStart: boolean): Steps<void> {
    const { cut } = this.#model;
    const pieces = this.#preTokens.split(text, isStart);
    let work = 0;
    for (const piece of cut ? cutPieces(pieces, cut) : pieces) {
      if (piece === undefined) {
        yield;
        continue;
      }
      out.append(this.#model.known(piece) ?? (yield* this.#model.encode(piece)));
      work += 16 + piece.length;
      if (work < workPerStep) continue;
      work = 0;
      yield;
    }
  }

  decode(tokenIds: ArrayLike<number>): string {
    const tokens: string[] = [];
    for (let at = 0; at < tokenIds.length; at++) {
      const text = this.#texts[tokenIds[at] ?? -1];
      if (text !== undefined) tokens.push(text);
    }
    return tokens.length === 0 ? '' : this.#decoder(tokens);
  }

  // biome-ignore lint/correctness/useYield: decoding is short here, and waits only in the remote tokenizer.
  *decodeSteps(tokenIds: Int32Array): Steps<string> {
    return this.decode(tokenIds);
  }

  idOf(text: string): number | undefined {
    return this.#added.get(text) ?? this.#vocab.get(text);
  }
}

function* cutPieces(pieces: Pieces, cut: (piece: string) => Pieces): Pieces {
  for (const piece of pieces) {
    if (piece === undefined || piece.length === 1) yield piece;
    else yield* cut(piece);
  }
}

/** An added token that the vocabulary has too is known by the id that it was added with. */
function listTexts(vocab: ReadonlyMap<string, number>, added: ReadonlyMap<string, number>): (string | undefined)[] {
  const texts: (string | undefined)[] = [];
  for (const [text, id] of vocab) if ((added.get(text) ?? id) === id) texts[id] = text;
  for (const [text, id] of added) texts[id] = text;
  return texts;
}

function splitOrdinary(
  tokens: OrdinaryTokens,
  text: string,
): ReturnType<OrdinaryTokens['split']> | { readonly text: string; readonly id?: number }[] {
  return tokens.isEmpty ? [{ text }] : tokens.split(text);
}

/** The reference would look for a changed text, for example one that starts with a space. */
function refuseChanged(control: readonly AddedToken[], run: (text: string) => string): void {
  const changed = control.find(({ content, normalized }) => normalized && run(content) !== content);
  if (changed) throw new Error(`its control token ${changed.content} is normalised to ${JSON.stringify(run(changed.content))}`);
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
  const joined = new IdList();
  for (const ids of encoded) joined.append(ids);
  return joined.toIds();
}
