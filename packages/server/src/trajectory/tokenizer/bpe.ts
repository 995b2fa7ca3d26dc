// Byte-pair merging on token ids: the same result as the library, in O(n log n) for a long run without spaces, and in steps. Only for
// byte-level vocabularies, where every byte is a token; others are left to the library. Decision 0014 has the measurements.

import { z } from 'zod';
import type { Steps } from '../../base/pace.ts';

const bpeModel = z.looseObject({
  type: z.literal('BPE'),
  // Checking each of hundreds of thousands of entries would take seconds.
  vocab: z.custom<Readonly<Record<string, number>>>((value) => typeof value === 'object' && value !== null),
  merges: z.custom<readonly (string | readonly [string, string])[]>(Array.isArray),
  byte_fallback: z.boolean().nullish(),
  dropout: z.number().nullish(),
  continuing_subword_prefix: z.string().nullish(),
  end_of_word_suffix: z.string().nullish(),
  ignore_merges: z.boolean().nullish(),
});

export interface Bpe {
  /** The ids of one piece of pre-tokenised text. A long piece takes several steps. */
  encode(piece: string): Steps<Int32Array>;
}

/** Undefined for a model that needs more than plain merging. A piece never becomes one of the `reserved` tokens as a whole. */
export function openBpe(model: unknown, reserved: ReadonlySet<string>): Bpe | undefined {
  const parsed = bpeModel.safeParse(model);
  if (!parsed.success) return undefined;
  const { vocab, merges, byte_fallback, dropout, continuing_subword_prefix, end_of_word_suffix, ignore_merges } = parsed.data;
  if (byte_fallback || dropout || continuing_subword_prefix || end_of_word_suffix) return undefined;
  const ids = new Map(Object.entries(vocab));
  const table = new MergeTable(merges.length);
  for (const [rank, merge] of merges.entries()) {
    const [left = '', right = ''] = typeof merge === 'string' ? merge.split(' ', 2) : merge;
    const [leftId, rightId, merged] = [ids.get(left), ids.get(right), ids.get(left + right)];
    if (leftId === undefined || rightId === undefined || merged === undefined) return undefined;
    table.add(leftId, rightId, { rank, merged });
  }
  const bytes = Int32Array.from(byteLetters, (letter) => ids.get(letter) ?? -1);
  if (bytes.includes(-1)) return undefined;
  let longestWhole = 0;
  if (ignore_merges) for (const token of ids.keys()) longestWhole = Math.max(longestWhole, token.length);
  return new MergingBpe({ ids, table, bytes, longestWhole, reserved });
}

/** The character that stands for each byte in a vocabulary: the byte itself if it is printable, otherwise the next one from U+0100. */
const byteLetters: readonly string[] = makeByteLetters();

function makeByteLetters(): string[] {
  let free = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(isPrintable ? byte : free++);
  });
}

/** A long piece yields after this many merges. */
const mergesPerStep = 2048;

/** Longer pieces rarely repeat, and would only fill the cache. */
const maxCachedLength = 64;
const maxCached = 20_000;

interface MergingOptions {
  readonly ids: ReadonlyMap<string, number>;
  readonly table: MergeTable;
  /** The token id of each byte. */
  readonly bytes: Int32Array;
  /** A piece of at most this many bytes that is a token becomes that token without merging (`ignore_merges`); 0 otherwise. */
  readonly longestWhole: number;
  readonly reserved: ReadonlySet<string>;
}

class MergingBpe implements Bpe {
  readonly #options: MergingOptions;
  readonly #cache = new Map<string, Int32Array>();

  constructor(options: MergingOptions) {
    this.#options = options;
  }

  *encode(piece: string): Steps<Int32Array> {
    const known = this.#cache.get(piece);
    if (known) return known;
    const utf8 = Buffer.from(piece);
    const whole = utf8.length <= this.#options.longestWhole ? this.#findWhole(utf8) : undefined;
    const encoded = whole === undefined ? yield* this.#merge(utf8) : Int32Array.of(whole);
    if (piece.length <= maxCachedLength) this.#store(piece, encoded);
    return encoded;
  }

  #findWhole(utf8: Buffer): number | undefined {
    const letters = Array.from(utf8, (byte) => byteLetters[byte]).join('');
    return this.#options.reserved.has(letters) ? undefined : this.#options.ids.get(letters);
  }

  #store(piece: string, encoded: Int32Array): void {
    if (this.#cache.size >= maxCached) this.#cache.clear();
    this.#cache.set(piece, encoded);
  }

  /** Merges the pair with the lowest rank first, the leftmost among equals, until no pair can merge. */
  *#merge(utf8: Buffer): Steps<Int32Array> {
    const { bytes, table } = this.#options;
    const { length } = utf8;
    const [symbols, next, previous] = [new Int32Array(length), new Int32Array(length), new Int32Array(length)];
    for (let at = 0; at < length; at++) {
      symbols[at] = bytes[utf8[at] ?? 0] ?? -1;
      next[at] = at + 1;
      previous[at] = at - 1;
    }
    const queue = new MergeQueue(3 * length);
    const slots = new Int32Array(length).fill(-1);
    const offer = (at: number) => {
      const right = next[at] ?? length;
      const slot = right < length ? table.find(symbols[at] ?? -1, symbols[right] ?? -1) : -1;
      slots[at] = slot;
      if (slot >= 0) queue.push(table.rankAt(slot), at);
    };
    for (let at = 0; at + 1 < length; at++) offer(at);
    let merges = 0;
    for (let left = queue.pop(table, slots); left >= 0; left = queue.pop(table, slots)) {
      if (++merges % mergesPerStep === 0) yield;
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

function collect(symbols: Int32Array, next: Int32Array): Int32Array {
  const out: number[] = [];
  for (let at = 0; at < symbols.length; at = next[at] ?? symbols.length) out.push(symbols[at] ?? 0);
  return Int32Array.from(out);
}

/** Maps a pair of ids to its rank and merged id: open addressing in one typed array, because there are hundreds of thousands. */
class MergeTable {
  readonly #cells: Int32Array;
  readonly #mask: number;

  constructor(size: number) {
    const capacity = 2 ** Math.ceil(Math.log2(2 * size + 2));
    this.#cells = new Int32Array(4 * capacity).fill(-1);
    this.#mask = capacity - 1;
  }

  /** A pair that is added twice keeps the later rank, as in a Map. */
  add(left: number, right: number, { rank, merged }: { rank: number; merged: number }): void {
    this.#cells.set([left, right, rank, merged], 4 * this.#probe(left, right));
  }

  find(left: number, right: number): number {
    const slot = this.#probe(left, right);
    return this.#cells[4 * slot] === left ? slot : -1;
  }

  rankAt(slot: number): number {
    return this.#cells[4 * slot + 2] ?? -1;
  }

  mergedAt(slot: number): number {
    return this.#cells[4 * slot + 3] ?? -1;
  }

  #probe(left: number, right: number): number {
    const cells = this.#cells;
    let hash = Math.imul(Math.imul(left, 0x9e37_79b1) + right, 0x85eb_ca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
    let slot = (hash ^ (hash >>> 16)) & this.#mask;
    while (cells[4 * slot] !== -1 && (cells[4 * slot] !== left || cells[4 * slot + 1] !== right)) slot = (slot + 1) & this.#mask;
    return slot;
  }
}

const positions = 2 ** 32;

/** A heap of ranks and positions, each pair in one number. Entries whose pair has changed since are skipped. */
class MergeQueue {
  readonly #heap: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#heap = new Float64Array(capacity);
  }

  push(rank: number, at: number): void {
    const heap = this.#heap;
    const key = rank * positions + at;
    let node = this.#size++;
    while (node > 0) {
      const parent = (node - 1) >> 1;
      const above = heap[parent] ?? 0;
      if (above <= key) break;
      heap[node] = above;
      node = parent;
    }
    heap[node] = key;
  }

  /** The position of the next pair to merge, or -1. */
  pop(table: MergeTable, slots: Int32Array): number {
    while (this.#size > 0) {
      const key = this.#heap[0] ?? 0;
      this.#removeFirst();
      const rank = Math.floor(key / positions);
      const at = key - rank * positions;
      const slot = slots[at] ?? -1;
      if (slot >= 0 && table.rankAt(slot) === rank) return at;
    }
    return -1;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const key = heap[--this.#size] ?? 0;
    let node = 0;
    for (let child = 1; child < this.#size; child = 2 * node + 1) {
      if (child + 1 < this.#size && (heap[child + 1] ?? 0) < (heap[child] ?? 0)) child += 1;
      const below = heap[child] ?? 0;
      if (below >= key) break;
      heap[node] = below;
      node = child;
    }
    heap[node] = key;
  }
}
