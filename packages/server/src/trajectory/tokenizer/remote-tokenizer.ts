// A tokenizer that asks a backend's own. What users and tools wrote is taken apart wherever it spells a control token, so that the
// server cannot recognise one in it; what comes back is checked all the same.

import { awaitStep, type Steps } from '../../base/pace.ts';
import type { TokenSource } from './token-source.ts';
import { type ControlToken, joinIds, type PartTokenizer, splitParts, type TextPart, toPattern } from './tokenizer.ts';

/** Whatever looks like a control token: in angle brackets without space, or in square ones in capitals. */
const suspects = /<[^\s<>]{1,64}>|\[\/?[A-Z][A-Z0-9_]{1,32}\]/g;
const longestRemembered = 64;
const mostRemembered = 4096;

export class RemoteTokenizer implements PartTokenizer {
  readonly eosIds: readonly number[];
  readonly #source: TokenSource;
  readonly #control: ReadonlyMap<string, ControlToken>;
  readonly #controlIds: ReadonlySet<number>;
  readonly #pattern: RegExp;
  /** Short stretches, most of them the template's own, which come again in every turn. */
  readonly #remembered = new Map<string, Int32Array>();
  /** Whether a suspect is one token of the vocabulary. */
  readonly #suspects = new Map<string, boolean>();

  private constructor(source: TokenSource, control: ReadonlyMap<string, number>, eosToken: string | undefined) {
    this.#source = source;
    this.#control = new Map(Array.from(control, ([text, id]) => [text, { id, lstrip: false, rstrip: false }]));
    this.#controlIds = new Set(control.values());
    this.#pattern = toPattern([...control.keys()]);
    const eosId = eosToken === undefined ? undefined : control.get(eosToken);
    this.eosIds = eosId === undefined ? [] : [eosId];
  }

  /** `texts` are where control tokens are looked for besides `candidates`: the chat template. Throws when any of them can be forged. */
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
    for (const text of control.keys()) await tokenizer.#askPlain(`x${text}y ${text}`);
    return tokenizer;
  }

  get controlTokens(): readonly string[] {
    return [...this.#control.keys()];
  }

  *encodeSteps(parts: readonly TextPart[]): Steps<Int32Array> {
    const asked: Promise<Int32Array>[] = [];
    for (const { text, id } of splitParts(parts, { control: this.#control, pattern: this.#pattern })) {
      asked.push(this.#askStretch(text));
      if (id !== undefined) asked.push(Promise.resolve(Int32Array.of(id)));
    }
    return joinIds(yield* awaitStep(Promise.all(asked)));
  }

  *decodeSteps(tokenIds: Int32Array): Steps<string> {
    return yield* awaitStep(this.#source.detokenize(tokenIds));
  }

  async #askStretch(text: string): Promise<Int32Array> {
    const known = this.#remembered.get(text);
    if (known) return known;
    const ids = await this.#askPlain(text);
    if (text.length <= longestRemembered && this.#remembered.size < mostRemembered) this.#remembered.set(text, ids);
    return ids;
  }

  /** Throws when a control token comes out all the same. */
  async #askPlain(text: string): Promise<Int32Array> {
    if (text === '') return new Int32Array(0);
    const pieces = await this.#takeApart(text);
    const encoded = await Promise.all(pieces.map((piece) => this.#source.tokenizePlain(piece)));
    const ids = joinIds(encoded);
    const forged = ids.find((id) => this.#controlIds.has(id));
    if (forged === undefined) return ids;
    throw new Error(`${this.#source.url} makes the control token ${forged} of text; give model.tokenizer as a folder instead`);
  }

  /** Cut behind the first letter of each spelled control token. */
  async #takeApart(text: string): Promise<string[]> {
    const pieces: string[] = [];
    let begin = 0;
    const pattern = new RegExp(`${this.#pattern.source}|${suspects.source}`, 'g');
    for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
      pattern.lastIndex = match.index + 1; // one may be inside of what only looked like one
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
    if (this.#suspects.size < mostRemembered) this.#suspects.set(suspect, isOne);
    return isOne;
  }
}
