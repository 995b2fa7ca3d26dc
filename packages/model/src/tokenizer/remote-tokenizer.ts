// A tokenizer that calls a backend's own. Text of users and tools is split wherever it spells a control token, so that the server cannot
// recognise one in it; the reply is checked as well.

import { awaitStep, type Steps } from '@millrace/base/pace';
import { type ControlToken, splitParts, type TextPart, toPattern } from './added-tokens.ts';
import type { TokenSource } from './token-source.ts';
import { joinIds, type PartTokenizer } from './tokenizer.ts';

/** What may be a control token: angle brackets without spaces inside, or square brackets with capitals. */
const suspects = /<[^\s<>]{1,64}>|\[\/?[A-Z][A-Z0-9_]{1,32}\]/g;
const maxCachedLength = 64;
const maxCached = 4096;

export class RemoteTokenizer implements PartTokenizer {
  readonly eosIds: readonly number[];
  readonly #source: TokenSource;
  readonly #control: ReadonlyMap<string, ControlToken>;
  readonly #controlIds: ReadonlySet<number>;
  readonly #pattern: RegExp;
  /** Short texts, most of them the template's, which repeat in every turn. */
  readonly #cache = new Map<string, Int32Array>();
  /** Whether a suspect is a single token of the vocabulary. */
  readonly #suspects = new Map<string, boolean>();

  private constructor(source: TokenSource, control: ReadonlyMap<string, number>, eosToken: string | undefined) {
    this.#source = source;
    this.#control = new Map(Array.from(control, ([text, id]) => [text, { id, lstrip: false, rstrip: false }]));
    this.#controlIds = new Set(control.values());
    this.#pattern = toPattern([...control.keys()]);
    const eosId = eosToken === undefined ? undefined : control.get(eosToken);
    this.eosIds = eosId === undefined ? [] : [eosId];
  }

  /** Looks for control tokens among `candidates` and in `texts` (the chat template). Throws if any of them can be forged. */
  static async open(
    source: TokenSource,
    { candidates, texts, eosToken }: { candidates: readonly string[]; texts: readonly string[]; eosToken?: string | undefined },
  ): Promise<RemoteTokenizer> {
    const spelled = new Set([...candidates, ...texts.flatMap((text) => text.match(suspects) ?? [])]);
    const control = new Map<string, number>();
    for (const text of spelled) {
      const [id, ...others] = await source.tokenize(text);
      if (id !== undefined && others.length === 0) control.set(text, id);
    }
    const tokenizer = new RemoteTokenizer(source, control, eosToken);
    for (const text of control.keys()) await tokenizer.#encodePlain(`x${text}y ${text}`);
    return tokenizer;
  }

  get controlTokens(): readonly string[] {
    return [...this.#control.keys()];
  }

  *encodeSteps(parts: readonly TextPart[]): Steps<Int32Array> {
    const pending: Promise<Int32Array>[] = [];
    for (const { text, id } of splitParts(parts, { control: this.#control, pattern: this.#pattern })) {
      pending.push(this.#encodeText(text));
      if (id !== undefined) pending.push(Promise.resolve(Int32Array.of(id)));
    }
    return joinIds(yield* awaitStep(Promise.all(pending)));
  }

  *decodeSteps(tokenIds: Int32Array): Steps<string> {
    return yield* awaitStep(this.#source.detokenize(tokenIds));
  }

  async #encodeText(text: string): Promise<Int32Array> {
    const known = this.#cache.get(text);
    if (known) return known;
    const ids = await this.#encodePlain(text);
    if (text.length <= maxCachedLength && this.#cache.size < maxCached) this.#cache.set(text, ids);
    return ids;
  }

  /** Throws if the reply contains a control token. */
  async #encodePlain(text: string): Promise<Int32Array> {
    if (text === '') return new Int32Array(0);
    const pieces = await this.#splitSuspects(text);
    const encoded = await Promise.all(pieces.map((piece) => this.#source.tokenizePlain(piece)));
    const ids = joinIds(encoded);
    const forged = ids.find((id) => this.#controlIds.has(id));
    if (forged === undefined) return ids;
    throw new Error(`${this.#source.url} turns plain text into the control token ${forged}; set model.tokenizer to a folder instead`);
  }

  /** Splits after the first character of each control token that the text spells. */
  async #splitSuspects(text: string): Promise<string[]> {
    const pieces: string[] = [];
    let begin = 0;
    const pattern = new RegExp(`${this.#pattern.source}|${suspects.source}`, 'g');
    for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
      pattern.lastIndex = match.index + 1; // a control token may start inside this match
      if (!(await this.#isOneToken(match[0]))) continue;
      pieces.push(text.slice(begin, match.index + 1));
      begin = match.index + 1;
    }
    return [...pieces, text.slice(begin)].filter((piece) => piece !== '');
  }

  async #isOneToken(suspect: string): Promise<boolean> {
    if (this.#control.has(suspect)) return true;
    const known = this.#suspects.get(suspect);
    if (known !== undefined) return known;
    const isOne = (await this.#source.tokenize(suspect)).length === 1;
    if (this.#suspects.size < maxCached) this.#suspects.set(suspect, isOne);
    return isOne;
  }
}
