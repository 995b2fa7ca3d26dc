// A cursor over tokens that counts how deep and how large an expression gets.

import type { MathToken } from './tokens.ts';

/** What the parser cannot read is compared as text. */
export class Unreadable extends Error {}

const maxDepth = 60;
/** Factorials, binomials, sums: they are much work. */
const maxLarge = 8;

export const closers: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}', '\\{': '\\}' };

export class TokenReader {
  readonly #tokens: readonly MathToken[];
  #at = 0;
  /** Read before the others. */
  #putBack: MathToken | undefined;
  #depth = 0;
  #large = 0;

  constructor(tokens: readonly MathToken[]) {
    this.#tokens = tokens;
  }

  peek(ahead = 0): MathToken | undefined {
    if (this.#putBack === undefined) return this.#tokens[this.#at + ahead];
    return ahead === 0 ? this.#putBack : this.#tokens[this.#at + ahead - 1];
  }

  isMark(text: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token?.kind === 'mark' && token.text === text;
  }

  skip(count: number): void {
    for (let left = count; left > 0; left -= 1) {
      if (this.#putBack === undefined) this.#at += 1;
      this.#putBack = undefined;
    }
  }

  take(text: string): boolean {
    if (!this.isMark(text)) return false;
    this.skip(1);
    return true;
  }

  expect(text: string): void {
    if (!this.take(text)) throw new Unreadable(`${text} is missing`);
  }

  next(): MathToken {
    const token = this.peek();
    if (token === undefined) throw new Unreadable('the expression ends early');
    this.skip(1);
    return token;
  }

  /** The next token is this one. */
  putBack(token: MathToken): void {
    this.#putBack = token;
  }

  /** Everything up to a place that the test finds, which stays. */
  takeUntil(isEnd: (ahead: number) => boolean): readonly MathToken[] {
    const taken: MathToken[] = [];
    while (!isEnd(0)) taken.push(this.next());
    return taken;
  }

  nextName(): string {
    const token = this.next();
    if (token.kind !== 'name') throw new Unreadable('a name is missing');
    return token.text;
  }

  textUntil(close: string): string {
    let text = '';
    while (!this.take(close)) text += this.next().text;
    return text;
  }

  enter(): void {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new Unreadable('nested too deeply');
  }

  leave(): void {
    this.#depth -= 1;
  }

  countLarge(): void {
    this.#large += 1;
    if (this.#large > maxLarge) throw new Unreadable('too many factorials or sums');
  }
}
