// The lexer of our Jinja: template source to tokens, with the white-space rules that Jinja2 has under trim_blocks and lstrip_blocks,
// the options of every chat template.

import { fullSpace, spaceClass, trimEndSpace } from '../values/python-text.ts';

export type TokenKind = 'data' | 'open' | 'close' | 'name' | 'string' | 'integer' | 'float' | 'operator' | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** The spelling: of `open` and `close` it is `{%`, `{{`, `%}` or `}}`; of a string, its value. */
  readonly text: string;
  readonly line: number;
}

export class TemplateSyntaxError extends Error {}

const opening = new RegExp(`\\{%[-+]?[${spaceClass}]*raw[${spaceClass}]*(?:-%\\}[${spaceClass}]*|%\\})|\\{[%{#][-+]?`, 'g');
const rawEnd = new RegExp(`\\{%([-+]?)[${spaceClass}]*endraw[${spaceClass}]*(?:\\+%\\}|-%\\}[${spaceClass}]*|%\\}\\n?)`, 'g');
const commentEnd = new RegExp(`(?:\\+#\\}|-#\\}[${spaceClass}]*|#\\}\\n?)`, 'g');
const blockEnd = new RegExp(`(?:\\+%\\}|-%\\}[${spaceClass}]*|%\\}\\n?)`, 'y');
const variableEnd = new RegExp(`(?:-\\}\\}[${spaceClass}]*|\\}\\})`, 'y');
const float = /(?<!\.)[0-9][0-9_]*(?:(?:\.[0-9][0-9_]*)?[eE][+-]?[0-9][0-9_]*|\.[0-9][0-9_]*)/y;
const rules: readonly (readonly [TokenKind | 'space', RegExp])[] = [
  ['space', new RegExp(`[${spaceClass}]+`, 'y')],
  ['float', float],
  ['integer', /0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+|[0-9][0-9_]*/y],
  ['name', /[\p{ID_Start}_][\p{ID_Continue}]*/uy],
  ['string', /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y],
  ['operator', /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y],
];
const closerOf: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

export function tokenize(template: string): Token[] {
  return new Lexer(template.replace(/\r\n?/g, '\n').replace(/\n$/, '')).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #counted = 0;
  /** Whether what was read last ended a line, so that spaces before a tag may be its indentation. */
  #startsLine = true;

  constructor(source: string) {
    this.#source = source;
  }

  run(): Token[] {
    while (this.#at < this.#source.length) this.#readText();
    this.#push('end', '');
    return this.#tokens;
  }

  #readText(): void {
    opening.lastIndex = this.#at;
    const match = opening.exec(this.#source);
    if (!match) {
      this.#push('data', this.#source.slice(this.#at));
      this.#at = this.#source.length;
      return;
    }
    const [tag] = match;
    const sign = tag[2] ?? '';
    this.#pushData(this.#source.slice(this.#at, match.index), sign, tag.startsWith('{{'));
    this.#at = opening.lastIndex;
    this.#startsLine = tag.endsWith('\n');
    if (tag.startsWith('{#')) this.#skipComment();
    else if (tag.length > 3) this.#readRaw();
    else this.#readTag(tag.slice(0, 2));
  }

  /** A minus removes all space before a tag; otherwise a block that is alone on its line loses its indentation. */
  #pushData(text: string, sign: string, isVariable: boolean): void {
    let kept = text;
    if (sign === '-') kept = trimEndSpace(text);
    else if (sign !== '+' && !isVariable) {
      const from = text.lastIndexOf('\n') + 1;
      if ((from > 0 || this.#startsLine) && fullSpace.test(text.slice(from))) kept = text.slice(0, from);
    }
    if (kept !== '') this.#push('data', kept);
  }

  #skipComment(): void {
    commentEnd.lastIndex = this.#at;
    const match = commentEnd.exec(this.#source);
    if (!match) throw this.#fail('a comment is not closed');
    this.#at = commentEnd.lastIndex;
    this.#startsLine = match[0].endsWith('\n');
  }

  #readRaw(): void {
    rawEnd.lastIndex = this.#at;
    const match = rawEnd.exec(this.#source);
    if (!match) throw this.#fail('{% raw %} is not closed');
    this.#pushData(this.#source.slice(this.#at, match.index), match[1] ?? '', false);
    this.#at = rawEnd.lastIndex;
    this.#startsLine = match[0].endsWith('\n');
  }

  #readTag(tag: string): void {
    const end = tag === '{%' ? blockEnd : variableEnd;
    const open: string[] = [];
    this.#push('open', tag);
    while (this.#at < this.#source.length) {
      end.lastIndex = this.#at;
      const closing = open.length === 0 ? end.exec(this.#source) : null;
      if (closing) {
        this.#push('close', tag === '{%' ? '%}' : '}}');
        this.#at = end.lastIndex;
        this.#startsLine = closing[0].endsWith('\n');
        return;
      }
      this.#readToken(open);
    }
    throw this.#fail(`${tag} is not closed`);
  }

  #readToken(open: string[]): void {
    for (const [kind, rule] of rules) {
      rule.lastIndex = this.#at;
      const text = rule.exec(this.#source)?.[0];
      if (text === undefined) continue;
      if (kind === 'operator') this.#balance(text, open);
      if (kind === 'string') this.#push(kind, readEscapes(text.slice(1, -1)));
      else if (kind !== 'space') this.#push(kind, text);
      this.#at += text.length;
      return;
    }
    throw this.#fail(`unexpected ${JSON.stringify(this.#source[this.#at])}`);
  }

  #balance(text: string, open: string[]): void {
    const closer = closerOf[text];
    if (closer !== undefined) open.push(closer);
    else if (text === ')' || text === ']' || text === '}') {
      if (open.pop() !== text) throw this.#fail(`unexpected "${text}"`);
    }
  }

  #push(kind: TokenKind, text: string): void {
    this.#tokens.push({ kind, text, line: this.#lineAt(this.#at) });
  }

  #lineAt(at: number): number {
    for (let next = this.#source.indexOf('\n', this.#counted); next >= 0 && next < at; next = this.#source.indexOf('\n', this.#counted)) {
      this.#line += 1;
      this.#counted = next + 1;
    }
    return this.#line;
  }

  #fail(what: string): TemplateSyntaxError {
    return new TemplateSyntaxError(`line ${this.#lineAt(this.#at)}: ${what}`);
  }
}

const simpleEscapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\n': '',
  "'": "'",
  '"': '"',
  '\\': '\\',
};

/** Python's escapes. An unknown one stays as it is. */
function readEscapes(text: string): string {
  const escaped = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|([\s\S]))/g;
  return text.replace(escaped, (whole, x, u, long, octal, simple) => {
    const hex = x ?? u ?? long;
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
    return simpleEscapes[simple] ?? whole;
  });
}
