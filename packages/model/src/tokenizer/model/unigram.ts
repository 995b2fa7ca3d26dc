// The Unigram model of SentencePiece: the split of a piece into tokens with the highest total score, found in one pass and in steps.

import type { Steps } from '@millrace/base/pace';
import { z } from 'zod';
import { IdList } from './id-list.ts';
import type { TokenModel, TokenModelOptions } from './token-model.ts';

const unigramModel = z.looseObject({
  vocab: z.custom<readonly (readonly [string, number])[]>(Array.isArray, 'has no vocabulary'),
  unk_id: z.int().nullish(),
  byte_fallback: z.boolean().nullish(),
});

/** How much worse an unknown character is than the worst token. */
const unknownPenalty = 10;
const charactersPerStep = 2048;
const tokensPerStep = 4096;
const maxCachedLength = 64;
const maxCached = 20_000;

export function openUnigram(model: unknown, { unit, reserved }: TokenModelOptions): TokenModel {
  if (unit === 'bytes') throw new Error('its Unigram model has a byte-level pre-tokenizer, which is not supported');
  return new Unigram(unigramModel.parse(model), reserved);
}

class Unigram implements TokenModel {
  readonly #ids = new Map<string, number>();
  readonly #scores: Float64Array;
  /** Everything that a token starts with. */
  readonly #heads = new Set<string>();
  readonly #unknown: number | undefined;
  readonly #hasBytes: boolean;
  readonly #worst: number;
  readonly #cache = new Map<string, Int32Array>();

  constructor({ vocab, unk_id, byte_fallback }: z.infer<typeof unigramModel>, reserved: ReadonlySet<number>) {
    this.#scores = Float64Array.from(vocab, ([, score]) => score);
    this.#worst = this.#scores.reduce((worst, score) => Math.min(worst, score), 0) - unknownPenalty;
    this.#unknown = unk_id ?? undefined;
    this.#hasBytes = byte_fallback === true;
    for (const [id, [token]] of vocab.entries()) {
      if (reserved.has(id)) continue;
      this.#ids.set(token, id);
      for (let end = 1; end <= token.length; end++) this.#heads.add(token.slice(0, end));
    }
  }

  known(piece: string): Int32Array | undefined {
    return this.#cache.get(piece);
  }

  *encode(piece: string): Steps<Int32Array> {
    const ids = yield* this.#spell(piece, yield* this.#findPath(piece));
    if (piece.length > maxCachedLength) return ids;
    if (this.#cache.size >= maxCached) this.#cache.clear();
    this.#cache.set(piece, ids);
    return ids;
  }

  /** For each position, where the best token that ends there starts; negative if it is an unknown character. */
  *#findPath(piece: string): Steps<Int32Array> {
    const scores = new Float64Array(piece.length + 1).fill(Number.NEGATIVE_INFINITY);
    const starts = new Int32Array(piece.length + 1);
    scores[0] = 0;
    const offer = (end: number, score: number, start: number) => {
      if (score <= (scores[end] ?? 0)) return;
      scores[end] = score;
      starts[end] = start;
    };
    let count = 0;
    for (let at = 0; at < piece.length; ) {
      if (++count % charactersPerStep === 0) yield;
      const length = (piece.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
      const score = scores[at] ?? 0;
      let isSingle = false;
      for (let end = at + 1; end <= piece.length; end++) {
        const token = piece.slice(at, end);
        if (!this.#heads.has(token)) break;
        const id = this.#ids.get(token);
        if (id === undefined) continue;
        offer(end, score + (this.#scores[id] ?? 0), at);
        isSingle ||= end === at + length;
      }
      if (!isSingle) offer(at + length, score + this.#worst, -1 - at);
      at += length;
    }
    return starts;
  }

  /** Walks the path from its end to find where each token begins, then spells them from the front. */
  *#spell(piece: string, starts: Int32Array): Steps<Int32Array> {
    const begins = new Int32Array(piece.length);
    let count = 0;
    let isUnknown = false;
    for (let end = piece.length; end > 0; ) {
      const start = starts[end] ?? 0;
      const begin = start < 0 ? -1 - start : start;
      if (start < 0 && isUnknown) count -= 1;
      isUnknown = start < 0;
      begins[count++] = begin;
      end = begin;
    }
    const ids = new IdList();
    for (let index = count - 1; index >= 0; index--) {
      const end = index === 0 ? piece.length : begins[index - 1];
      for (const id of this.#idsOf(piece.slice(begins[index], end))) ids.push(id);
      if (index % tokensPerStep === 0) yield;
    }
    return ids.toIds();
  }

  /** Neighbouring unknown characters are one text. */
  #idsOf(token: string): readonly number[] {
    const id = this.#ids.get(token);
    if (id !== undefined) return [id];
    const bytes = this.#hasBytes ? Array.from(Buffer.from(token), (byte) => this.#ids.get(toByteToken(byte))) : [];
    const found = bytes.filter((one) => one !== undefined);
    if (this.#hasBytes && found.length === bytes.length) return found;
    if (this.#unknown === undefined) throw new Error(`the vocabulary has no token for ${JSON.stringify(token)}, and none for unknown text`);
    return [this.#unknown];
  }
}

function toByteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
}
