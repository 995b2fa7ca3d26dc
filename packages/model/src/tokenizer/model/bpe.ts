// Byte-pair merging on token ids: the same result as Rust's tokenizers, in O(n log n) for a long run without spaces, and in steps.
// Decision 0014 has the measurements.

import type { Steps } from '@millrace/base/pace';
import { z } from 'zod';
import { byteLetters, toLetters } from './byte-letters.ts';
import { isEmpty, isStale, MergeQueue, MergeTable } from './merge-queue.ts';
import type { SymbolUnit, TokenModel, TokenModelOptions } from './token-model.ts';
import { isMarked, makeWordCuts } from './word-cuts.ts';

const bpeModel = z.looseObject({
  /** A third element is the rank of the merge; otherwise it is its place in the list. Checking each would take seconds. */
  merges: z.custom<readonly (string | readonly [string, string, number?])[]>(Array.isArray, 'has no list of merges'),
  unk_token: z.string().nullish(),
  byte_fallback: z.boolean().nullish(),
  fuse_unk: z.boolean().nullish(),
  dropout: z.number().nullish(),
  continuing_subword_prefix: z.string().nullish(),
  end_of_word_suffix: z.string().nullish(),
  ignore_merges: z.boolean().nullish(),
});

/** Throws an Error that says what is missing or not supported. */
export function openBpe(model: unknown, { unit, vocab, reserved }: TokenModelOptions): TokenModel {
  const { merges, ...flags } = bpeModel.parse(model);
  for (const name of ['dropout', 'continuing_subword_prefix', 'end_of_word_suffix'] as const)
    if (flags[name]) throw new Error(`its model has ${name} = ${flags[name]}, which is not supported`);
  const unknown = flags.unk_token == null ? undefined : vocab.get(flags.unk_token);
  const { table, joined } = readMerges(merges, vocab, reserved);
  const tokens: UsableTokens = {
    find: (token) => {
      const id = vocab.get(token);
      return id === undefined || reserved.has(id) ? undefined : id;
    },
    vocab,
  };
  const keepsWhole = flags.ignore_merges === true;
  const cut = keepsWhole || unit === 'bytes' || tokens.find('▁') === undefined ? undefined : makeWordCuts(joined);
  return new MergingBpe({ tokens, table, symbols: chooseSymbols(tokens, { ...flags, unknown }, unit), keepsWhole, cut });
}

/** The tokens that a text may become. */
interface UsableTokens {
  find(token: string): number | undefined;
  /** With the reserved tokens. */
  readonly vocab: ReadonlyMap<string, number>;
}

function readMerges(
  merges: z.infer<typeof bpeModel>['merges'],
  vocab: ReadonlyMap<string, number>,
  reserved: ReadonlySet<number>,
): { readonly table: MergeTable; readonly joined: ReadonlySet<number> } {
  const table = new MergeTable(merges.length);
  const joined = new Set<number>();
  for (let index = 0; index < merges.length; index++) {
    const merge = merges[index] ?? '';
    const [left = '', right = '', rank = index] = typeof merge === 'string' ? toPair(merge) : merge;
    const [leftId, rightId, merged] = [vocab.get(left), vocab.get(right), vocab.get(left + right)];
    if (leftId === undefined || rightId === undefined || merged === undefined)
      throw new Error(`its merge of ${JSON.stringify(left)} and ${JSON.stringify(right)} is not in its vocabulary`);
    if (isMarked(right)) joined.add(left.charCodeAt(left.length - 1));
    if (!reserved.has(merged)) table.add(leftId, rightId, { rank, merged });
  }
  return { table, joined };
}

function toPair(merge: string): readonly [string, string] {
  const at = merge.indexOf(' ');
  return [merge.slice(0, at), merge.slice(at + 1)];
}

type UnknownFlags = Pick<z.infer<typeof bpeModel>, 'byte_fallback' | 'fuse_unk'> & { readonly unknown: number | undefined };

/** The symbols that a piece starts with, before anything is merged. */
interface Symbols {
  readonly read: (piece: string) => Steps<Int32Array>;
  /** The piece as the vocabulary spells it. */
  readonly spell: (piece: string) => string;
}

function chooseSymbols(tokens: UsableTokens, flags: UnknownFlags, unit: SymbolUnit): Symbols {
  if (unit === 'characters') return { read: openCharacters(tokens, flags), spell: (piece) => piece };
  const spell = (piece: string) => toLetters(Buffer.from(piece));
  const bytes = Int32Array.from(byteLetters, (letter) => tokens.find(letter) ?? -1);
  if (!bytes.includes(-1)) return { read: (piece) => readBytes(piece, bytes), spell };
  const readCharacters = openCharacters(tokens, flags);
  return { read: (piece) => readCharacters(spell(piece)), spell };
}

/** The work of one step: about a millisecond. */
const symbolsPerStep = 8192;
const maxBytesPerUnit = 3;

function* readBytes(piece: string, bytes: Int32Array): Steps<Int32Array> {
  const utf8 = Buffer.from(piece);
  const symbols = new Int32Array(utf8.length);
  for (let at = 0; at < utf8.length; at++) {
    symbols[at] = bytes[utf8[at] ?? 0] ?? -1;
    if (at % (8 * symbolsPerStep) === 8 * symbolsPerStep - 1) yield;
  }
  return symbols;
}

/** A character that is not in the vocabulary becomes its bytes, the unknown token, or nothing. */
function openCharacters({ find: findToken, vocab }: UsableTokens, flags: UnknownFlags): (piece: string) => Steps<Int32Array> {
  const { unknown } = flags;
  const byteIds = Array.from({ length: 256 }, (_, byte) => findToken(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`));
  const spellBytes = (character: string) => {
    const found = flags.byte_fallback ? Array.from(Buffer.from(character), (byte) => byteIds[byte]) : [];
    const all = found.filter((id) => id !== undefined);
    return all.length === found.length ? all : [];
  };
  const units = new Int32Array(0x1_0000).fill(-1);
  for (const token of vocab.keys()) if (token.length === 1) units[token.charCodeAt(0)] = findToken(token) ?? -1;
  const find = (piece: string, at: number, length: number) =>
    (length === 1 ? units[piece.charCodeAt(at)] : findToken(piece.slice(at, at + length))) ?? -1;
  return function* (piece) {
    const symbols = new Int32Array(maxBytesPerUnit * piece.length);
    let [count, isUnknown, nextStep] = [0, false, symbolsPerStep];
    for (let at = 0, length = 1; at < piece.length; at += length) {
      if (at >= nextStep) {
        nextStep += symbolsPerStep;
        yield;
      }
      length = (piece.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
      const id = find(piece, at, length);
      const found = id < 0 ? spellBytes(piece.slice(at, at + length)) : undefined;
      if (id >= 0) symbols[count++] = id;
      for (const byte of found ?? []) symbols[count++] = byte;
      const isMissing = found?.length === 0;
      if (isMissing && unknown !== undefined && !(isUnknown && flags.fuse_unk)) symbols[count++] = unknown;
      isUnknown = isMissing;
    }
    return symbols.subarray(0, count);
  };
}

/** Longer pieces rarely repeat, and would only fill the cache. */
const maxCachedLength = 64;
const maxCached = 20_000;

interface MergingOptions {
  readonly tokens: UsableTokens;
  readonly table: MergeTable;
  readonly symbols: Symbols;
  /** Whether a piece that is a token becomes that token without merging (`ignore_merges`). */
  readonly keepsWhole: boolean;
  readonly cut: TokenModel['cut'];
}

class MergingBpe implements TokenModel {
  readonly cut: TokenModel['cut'];
  readonly #options: MergingOptions;
  readonly #longestWhole: number;
  readonly #cache = new Map<string, Int32Array>();
  /** For pieces so short that they take one step. */
  readonly #scratch = makeWorkspace(scratchLength);

  constructor(options: MergingOptions) {
    this.#options = options;
    this.cut = options.cut;
    this.#longestWhole = options.keepsWhole
      ? options.tokens.vocab.keys().reduce((longest, token) => Math.max(longest, token.length), 0)
      : 0;
  }

  known(piece: string): Int32Array | undefined {
    return this.#cache.get(piece);
  }

  *encode(piece: string): Steps<Int32Array> {
    const whole = piece.length <= this.#longestWhole ? this.#findWhole(piece) : undefined;
    const encoded = whole === undefined ? yield* this.#merge(yield* this.#options.symbols.read(piece)) : Int32Array.of(whole);
    if (piece.length <= maxCachedLength) this.#store(piece, encoded);
    return encoded;
  }

  #findWhole(piece: string): number | undefined {
    return this.#options.tokens.find(this.#options.symbols.spell(piece));
  }

  #store(piece: string, encoded: Int32Array): void {
    if (this.#cache.size >= maxCached) this.#cache.clear();
    this.#cache.set(piece, encoded);
  }

  /** Merges the pair with the lowest rank first, the leftmost among equals, until no pair can merge. */
  *#merge(symbols: Int32Array): Steps<Int32Array> {
    const { table } = this.#options;
    const { length } = symbols;
    const { next, previous, slots, queue } = length <= scratchLength ? this.#scratch : makeWorkspace(length);
    link({ next, previous, slots }, length);
    queue.clear();
    const offer = (at: number) => {
      const right = next[at] ?? length;
      const slot = right < length ? table.find(symbols[at] ?? -1, symbols[right] ?? -1) : -1;
      slots[at] = slot;
      if (slot >= 0) queue.push(table.rankAt(slot), at);
    };
    for (let at = 0; at + 1 < length; at++) {
      offer(at);
      if (at % symbolsPerStep === symbolsPerStep - 1) yield;
    }
    let popped = 0;
    for (let left = queue.pop(table, slots); left !== isEmpty; left = queue.pop(table, slots)) {
      if (++popped % popsPerStep === 0) yield; // stale ones as well: at the end there are many
      if (left === isStale) continue;
      const right = next[left] ?? length;
      const after = next[right] ?? length;
      symbols[left] = table.mergedAt(slots[left] ?? -1);
      slots[right] = -1;
      next[left] = after;
      if (after < length) previous[after] = left;
      offer(left);
      const before = previous[left] ?? -1;
      if (before >= 0) offer(before);
    }
    return collect(symbols, next);
  }
}

const popsPerStep = 4096;
/** Each symbol is pushed once at first, and at most two for each merge. */
const scratchLength = popsPerStep / 4;

interface Workspace {
  /** The neighbours of each symbol. */
  readonly next: Int32Array;
  readonly previous: Int32Array;
  /** Where the merge of each symbol with the next one is in the table, or -1. */
  readonly slots: Int32Array;
  readonly queue: MergeQueue;
}

function makeWorkspace(length: number): Workspace {
  const [next, previous, slots] = [new Int32Array(length), new Int32Array(length), new Int32Array(length)];
  return { next, previous, slots, queue: new MergeQueue(length) };
}

function link({ next, previous, slots }: Omit<Workspace, 'queue'>, length: number): void {
  for (let at = 0; at < length; at++) {
    next[at] = at + 1;
    previous[at] = at - 1;
  }
  slots.fill(-1, 0, length);
}

/** The symbols that are left, moved to the front. */
function collect(symbols: Int32Array, next: Int32Array): Int32Array {
  let count = 0;
  for (let at = 0; at < symbols.length; at = next[at] ?? symbols.length) symbols[count++] = symbols[at] ?? 0;
  return symbols.slice(0, count);
}
