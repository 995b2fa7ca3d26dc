// The tokens of a template, one at a time, with what both halves of the parser ask of them.

import { TemplateSyntaxError, type Token, type TokenKind, tokenize } from './lexer.ts';

export class TemplateTokens {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(source: string) {
    this.#tokens = tokenize(source);
  }

  get current(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '', line: 0 };
  }

  next(): Token {
    const { current } = this;
    this.#at += 1;
    return current;
  }

  /** The token after the current one. */
  get ahead(): Token | undefined {
    return this.#tokens[this.#at + 1];
  }

  is(kind: TokenKind, ...texts: readonly string[]): boolean {
    const { current } = this;
    return current.kind === kind && (texts.length === 0 || texts.includes(current.text));
  }

  skip(kind: TokenKind, text: string): boolean {
    if (!this.is(kind, text)) return false;
    this.next();
    return true;
  }

  expect(kind: TokenKind, ...texts: readonly string[]): Token {
    if (!this.is(kind, ...texts)) throw this.fail(`expected ${texts.join(' or ') || kind}`);
    return this.next();
  }

  fail(what: string): TemplateSyntaxError {
    const { kind, text, line } = this.current;
    return new TemplateSyntaxError(
      `line ${line}: ${what}, found ${kind === 'end' ? 'the end of the template' : JSON.stringify(text.slice(0, 40))}`,
    );
  }
}
