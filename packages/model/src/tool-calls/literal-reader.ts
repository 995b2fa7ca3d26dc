// Reads literals of a few small languages in which models write arguments: Python's, and Gemma's with its own quotes.

import { setOwn } from './tool-calls.ts';

export interface LiteralSyntax {
  /** Quotes of strings; between `escapes` ones, a backslash escapes. */
  readonly quotes: readonly string[];
  readonly escapes: boolean;
  /** Between a key and its value in `{}`. */
  readonly colon: string;
}

export const pythonSyntax: LiteralSyntax = { quotes: ['"""', "'''", '"', "'"], escapes: true, colon: ':' };

const words: Readonly<Record<string, unknown>> = { True: true, true: true, False: false, false: false, None: null, null: null };
const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"', '\n': '' };
const maxDepth = 64;

/** As in a regular expression; others than ASCII are rare. */
const isSpace = (code: number): boolean =>
  code === 32 || (code >= 9 && code <= 13) || (code >= 160 && /\s/.test(String.fromCharCode(code)));

/** What cannot be read; a parser turns it into a sentence for the model. */
export class LiteralError extends Error {}

export class LiteralReader {
  readonly #text: string;
  readonly #syntax: LiteralSyntax;
  at: number;

  constructor(text: string, at: number, syntax: LiteralSyntax) {
    this.#text = text;
    this.at = at;
    this.#syntax = syntax;
  }

  skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.at))) this.at += 1;
  }

  /** Whether this text is next; it is then read. */
  take(part: string): boolean {
    this.skipSpace();
    if (!this.#text.startsWith(part, this.at)) return false;
    this.at += part.length;
    return true;
  }

  expect(part: string): void {
    if (!this.take(part)) throw new LiteralError(`expected ${part} at ${JSON.stringify(this.#text.slice(this.at, this.at + 40))}`);
  }

  /** The pattern must be sticky. */
  match(pattern: RegExp): string | undefined {
    this.skipSpace();
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.at = pattern.lastIndex;
    return found;
  }

  value(depth = 0): unknown {
    if (depth > maxDepth) throw new LiteralError('nested too deeply');
    if (this.take('[')) return this.#list(']', depth);
    if (this.take('(')) return this.#list(')', depth);
    if (this.take('{')) return this.entries('}', depth + 1);
    for (const quote of this.#syntax.quotes) if (this.take(quote)) return this.#string(quote);
    const number = this.match(/[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y);
    if (number !== undefined) return Number(number);
    const word = this.match(/[A-Za-z]+/y);
    if (word !== undefined && Object.hasOwn(words, word)) return words[word];
    throw new LiteralError(`no value at ${JSON.stringify(this.#text.slice(this.at, this.at + 40))}`);
  }

  /** Keys and values up to `close`. */
  entries(close: string, depth = 0): Record<string, unknown> {
    const read: Record<string, unknown> = {};
    while (!this.take(close)) {
      const key = this.#key();
      this.expect(this.#syntax.colon);
      setOwn(read, key, this.value(depth + 1));
      if (!this.take(',')) {
        this.expect(close);
        break;
      }
    }
    return read;
  }

  #key(): string {
    for (const quote of this.#syntax.quotes) if (this.take(quote)) return this.#string(quote);
    const bare = this.match(/[^\s:=,{}[\]()"']{1,200}/y);
    if (bare === undefined) throw new LiteralError(`no key at ${JSON.stringify(this.#text.slice(this.at, this.at + 40))}`);
    return bare;
  }

  #list(close: string, depth: number): unknown[] {
    const items: unknown[] = [];
    while (!this.take(close)) {
      items.push(this.value(depth + 1));
      if (!this.take(',')) {
        this.expect(close);
        break;
      }
    }
    return items;
  }

  #string(quote: string): string {
    let read = '';
    for (;;) {
      const next = this.#text.indexOf(quote, this.at);
      if (next < 0) throw new LiteralError('a string is not closed');
      const backslash = this.#syntax.escapes ? this.#text.indexOf('\\', this.at) : -1;
      if (backslash < 0 || backslash > next) {
        read += this.#text.slice(this.at, next);
        this.at = next + quote.length;
        return read;
      }
      read += this.#text.slice(this.at, backslash) + this.#escape(backslash);
    }
  }

  #escape(at: number): string {
    const code = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))/y;
    code.lastIndex = at;
    const match = code.exec(this.#text);
    if (match) {
      this.at = code.lastIndex;
      return String.fromCharCode(Number.parseInt(match[1] ?? match[2] ?? '', 16));
    }
    const char = this.#text[at + 1] ?? '';
    this.at = at + 2;
    return escapes[char] ?? `\\${char}`;
  }
}
