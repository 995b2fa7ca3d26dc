// Translates the regular expressions of tokenizer files, which are written for Oniguruma with Ruby's syntax, to JavaScript's. What both
// read differently is spelled out: white space, digits and words of all scripts, possessive quantifiers, names of scripts, classes.

/** Sources that match one character each, between parts of a pattern that match none. */
export type PatternPart = string | Atom;

export interface Atom {
  readonly source: string;
  readonly ignoresCase: boolean;
}

/** Throws an Error that names the pattern and the construct that is not supported. */
export function translatePattern(pattern: string): PatternPart[] {
  return new Translation(pattern).run();
}

/** The pattern as one regular expression, for short texts. */
export function toRegExp(parts: readonly PatternPart[]): RegExp {
  const source = parts.map((part) => (typeof part === 'string' ? part : part.ignoresCase ? `(?i:${part.source})` : part.source));
  return new RegExp(source.join(''), 'gv');
}

const classes: Readonly<Record<string, string>> = {
  s: '\\p{White_Space}',
  S: '\\P{White_Space}',
  d: '\\p{Nd}',
  D: '\\P{Nd}',
  w: '[\\p{L}\\p{M}\\p{N}\\p{Pc}]',
  W: '[^\\p{L}\\p{M}\\p{N}\\p{Pc}]',
  h: '[0-9a-fA-F]',
  H: '[^0-9a-fA-F]',
};
const controls: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7, e: 27, 0: 0 };
const newline: Atom = { source: '\\n', ignoresCase: false };
const [isStart, isEnd] = ['(?<![^])', '(?![^])'];
const anchors: Readonly<Record<string, readonly PatternPart[]>> = {
  A: [isStart],
  z: [isEnd],
  Z: ['(?=', newline, `?${isEnd})`],
  '^': [`(?:${isStart}|(?<=`, newline, '))'],
  $: [`(?:${isEnd}|(?=`, newline, '))'],
};
/** Names that Oniguruma has in common with POSIX. */
const posix: Readonly<Record<string, string>> = {
  alpha: '\\p{Alphabetic}',
  digit: '\\p{Nd}',
  alnum: '[\\p{Alphabetic}\\p{Nd}]',
  space: '\\p{White_Space}',
  upper: '\\p{Uppercase}',
  lower: '\\p{Lowercase}',
  word: '[\\p{L}\\p{M}\\p{N}\\p{Pc}]',
  xdigit: '[0-9a-fA-F]',
};
const groups = /^\((?:\?(?:[:=!>]|<[=!]|i:|i\)))?/;
const quantifier = /^(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})/;

class Translation {
  readonly #pattern: string;
  #at = 0;
  #atomics = 0;
  #ignoresCase = false;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  run(): PatternPart[] {
    const translated = this.#alternatives();
    if (this.#at < this.#pattern.length) throw this.#unsupported(this.#rest().slice(0, 8));
    return translated;
  }

  #rest(): string {
    return this.#pattern.slice(this.#at);
  }

  #unsupported(what: string): Error {
    return new Error(`its pattern ${JSON.stringify(this.#pattern)} has ${JSON.stringify(what)}, which is not supported`);
  }

  #take(expression: RegExp): string | undefined {
    const [taken] = expression.exec(this.#rest()) ?? [];
    this.#at += taken?.length ?? 0;
    return taken;
  }

  #alternatives(): PatternPart[] {
    const out: PatternPart[] = [];
    while (this.#at < this.#pattern.length && this.#pattern[this.#at] !== ')') {
      const bar = this.#take(/^\|/);
      out.push(...(bar === undefined ? this.#quantified() : [bar]));
    }
    return out;
  }

  #quantified(): PatternPart[] {
    let out = this.#piece();
    for (let times = this.#take(quantifier); times !== undefined; times = this.#take(quantifier)) {
      const counted = [...out, times.replace('{,', '{0,')];
      if (this.#take(/^\?/)) out = ['(?:', ...counted, '?)'];
      else if (!times.startsWith('{') && this.#take(/^\+/)) out = this.#atomic(counted);
      else out = quantifier.test(this.#rest()) ? ['(?:', ...counted, ')'] : counted;
    }
    return out;
  }

  /** What it has taken is never given back. */
  #atomic(inner: readonly PatternPart[]): PatternPart[] {
    const name = `a${this.#atomics++}`;
    return [`(?:(?=(?<${name}>`, ...inner, `))\\k<${name}>)`];
  }

  #piece(): PatternPart[] {
    const character = this.#pattern[this.#at] ?? '';
    if (character === '(') return this.#group();
    const anchor = anchors[/^\\?([AzZ^$])/.exec(this.#rest())?.[1] ?? ''];
    const isAnchor = /^(?:[\^$]|\\[AzZ])/.test(this.#rest());
    if (anchor && isAnchor) {
      this.#at += character === '\\' ? 2 : 1;
      return [...anchor];
    }
    return [{ source: this.#atom(character), ignoresCase: this.#ignoresCase }];
  }

  #atom(character: string): string {
    if (character === '[') return this.#class();
    if (character === '\\') return this.#escape();
    if (this.#take(/^\./)) return '[^\\n]';
    const code = this.#pattern.codePointAt(this.#at) ?? 0;
    this.#at += code > 0xffff ? 2 : 1;
    return toLiteral(code);
  }

  #group(): PatternPart[] {
    const open = this.#take(groups) ?? '(';
    if (open === '(' && this.#pattern[this.#at] === '?') throw this.#unsupported(`(${this.#rest().slice(0, 4)}`);
    const before = this.#ignoresCase;
    if (open.startsWith('(?i')) this.#ignoresCase = true;
    if (open === '(?i)') return ['(?:', ...this.#alternatives(), ')']; // up to the end of the group around it
    const inner = this.#alternatives();
    this.#ignoresCase = before;
    if (!this.#take(/^\)/)) throw this.#unsupported('a group without its end');
    if (open === '(?>') return this.#atomic(inner);
    return [open === '(' || open === '(?i:' ? '(?:' : open, ...inner, ')'];
  }

  #escape(): string {
    const code = this.#codeEscape();
    if (code !== undefined) return toLiteral(code);
    const property = this.#take(/^\\[pP]\{\^?[\w=]+\}/);
    if (property) return this.#property(property);
    const letter = this.#take(/^\\[a-zA-Z]/)?.[1] ?? '';
    const translated = classes[letter];
    if (translated === undefined) throw this.#unsupported(`\\${letter}`);
    return translated;
  }

  /** An escape that stands for one character. */
  #codeEscape(): number | undefined {
    const hex = this.#take(/^\\(?:u[0-9a-fA-F]{4}|x\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2})/);
    if (hex) return Number.parseInt(hex.replace(/[^0-9a-fA-F]/g, ''), 16);
    const control = this.#take(/^\\[nrtfvae0]/);
    if (control) return controls[control[1] ?? ''];
    const literal = this.#take(/^\\[^a-zA-Z0-9]/u);
    return literal?.codePointAt(1);
  }

  #property(spelled: string): string {
    const isNegated = spelled.startsWith('\\P') !== spelled.includes('{^');
    const name = spelled.replace(/^\\[pP]\{\^?|\}$/g, '');
    const letter = isNegated ? 'P' : 'p';
    for (const property of [name, `Script=${name}`])
      try {
        return new RegExp(`\\${letter}{${property}}`, 'v').source;
      } catch {} // tried as a category first, then as a script
    const known = posix[name.toLowerCase()];
    if (known === undefined) throw this.#unsupported(spelled);
    return isNegated ? `[^${known}]` : known;
  }

  /** Operands of `&&` become classes of their own, as JavaScript wants them. */
  #class(): string {
    const open = this.#take(/^\[\^?/) ?? '[';
    const operands = [''];
    for (let isFirst = true; isFirst || this.#pattern[this.#at] !== ']'; isFirst = false) {
      if (this.#at >= this.#pattern.length) throw this.#unsupported('a class without its end');
      if (this.#take(/^&&/)) operands.push('');
      else operands[operands.length - 1] += this.#classItem();
    }
    this.#at += 1;
    return operands.length === 1 ? `${open}${operands[0]}]` : `${open}${operands.map((operand) => `[${operand}]`).join('&&')}]`;
  }

  #classItem(): string {
    const named = this.#take(/^\[:\^?\w+:\]/);
    if (named) return this.#property(named.replace(/^\[:/, '\\p{').replace(/:\]$/, '}'));
    if (this.#pattern[this.#at] === '[') return this.#class();
    const first = this.#classCharacter();
    if (typeof first === 'string') return first;
    if (!/^-[^\]]/.test(this.#rest())) return toLiteral(first);
    this.#at += 1;
    const last = this.#classCharacter();
    return typeof last === 'string' ? `${toLiteral(first)}\\-${last}` : `${toLiteral(first)}-${toLiteral(last)}`;
  }

  #classCharacter(): string | number {
    if (this.#take(/^\\b/)) return 8;
    if (this.#pattern[this.#at] === '\\') return this.#codeEscape() ?? this.#escape();
    const code = this.#pattern.codePointAt(this.#at) ?? 0;
    this.#at += code > 0xffff ? 2 : 1;
    return code;
  }
}

function toLiteral(code: number): string {
  const character = String.fromCodePoint(code);
  return /[a-zA-Z0-9]/.test(character) ? character : `\\u{${code.toString(16)}}`;
}
