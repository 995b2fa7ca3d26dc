// Finds the matches of a pattern in a long text without blocking. Characters that the pattern cannot tell apart are one class. The text
// is first written as one byte per character, the number of its class, in steps; on that text, V8 matches a million characters in a few
// milliseconds, where a pattern over Unicode would take a hundred.

import { type Atom, type PatternPart, translatePattern } from './oniguruma.ts';

/** The matches of a pattern in a text, one after the other: a million of them need no object each. */
interface Matches {
  /** The last one that was found, in code units. It may be empty, but not directly after the one before. */
  readonly begin: number;
  readonly end: number;
  /** Finds the next one. False if there is none. */
  next(): boolean;
}

const maxClasses = 256;
/** The work of one step: about a millisecond. */
const unitsPerStep = 32_768;

export class ClassPattern {
  readonly #parts: readonly PatternPart[];
  readonly #atoms: readonly Atom[];
  readonly #tests: readonly RegExp[];
  /** The class of each character plus one; 0 if it has not been seen. */
  readonly #classes = new Uint16Array(0x11_0000);
  /** For each class, the atoms that match its characters. */
  readonly #signatures: string[] = [];
  #compiled: { readonly classes: number; readonly expression: RegExp } | undefined;

  constructor(pattern: string) {
    this.#parts = translatePattern(pattern);
    const bySource = new Map(this.#parts.filter((part) => typeof part !== 'string').map((atom) => [toKey(atom), atom]));
    this.#atoms = [...bySource.values()];
    this.#tests = this.#atoms.map(({ source, ignoresCase }) => new RegExp(`^${source}$`, ignoresCase ? 'vi' : 'v'));
  }

  /** Yields when a step is over. */
  *find(text: string): Generator<undefined, Matches> {
    const { written, offsets } = yield* this.#write(text);
    return new MatchCursor(this.#compile(), written, offsets);
  }

  /** `offsets` are the positions of characters in the text, if some of them are two code units long. */
  *#write(text: string): Generator<undefined, { readonly written: string; readonly offsets: Int32Array | undefined }> {
    const classes = this.#classes;
    const bytes = Buffer.allocUnsafe(Math.min(text.length, unitsPerStep));
    let written = '';
    let offsets: Int32Array | undefined;
    let count = 0;
    for (let at = 0; at < text.length; ) {
      const stop = Math.min(text.length, at + unitsPerStep);
      let filled = 0;
      while (at < stop) {
        const unit = text.charCodeAt(at);
        const code = unit >= 0xd800 && unit < 0xdc00 ? (text.codePointAt(at) ?? 0) : unit;
        if (code > 0xffff) offsets ??= startOffsets(text.length, count + filled);
        if (offsets) offsets[count + filled] = at;
        bytes[filled++] = (classes[code] || this.#classify(code)) - 1;
        at += code > 0xffff ? 2 : 1;
      }
      written += bytes.toString('latin1', 0, filled);
      count += filled;
      if (at < text.length) yield;
    }
    if (offsets) offsets[count] = text.length;
    return { written, offsets };
  }

  #classify(code: number): number {
    const character = String.fromCodePoint(code);
    const signature = this.#tests.map((test) => (test.test(character) ? '1' : '0')).join('');
    const known = this.#signatures.indexOf(signature);
    const index = known < 0 ? this.#signatures.push(signature) - 1 : known;
    if (index >= maxClasses) throw new Error('a pattern of this tokenizer tells more than 256 kinds of characters apart');
    this.#classes[code] = index + 1;
    return index + 1;
  }

  /** Again whenever a text had a character of a new class. */
  #compile(): RegExp {
    if (this.#compiled?.classes === this.#signatures.length) return this.#compiled.expression;
    const sets = new Map(this.#atoms.map((atom, index) => [toKey(atom), this.#toSet(index)]));
    const source = this.#parts.map((part) => (typeof part === 'string' ? part : sets.get(toKey(part))));
    const expression = new RegExp(source.join(''), 'g');
    this.#compiled = { classes: this.#signatures.length, expression };
    return expression;
  }

  #toSet(atom: number): string {
    const numbers = this.#signatures.flatMap((signature, index) => (signature[atom] === '1' ? [index] : []));
    return `[${numbers.map((index) => `\\x${index.toString(16).padStart(2, '0')}`).join('')}]`;
  }
}

class MatchCursor implements Matches {
  begin = 0;
  end = 0;
  readonly #expression: RegExp;
  readonly #written: string;
  readonly #offsets: Int32Array | undefined;
  #from = 0;
  #last = -1;

  constructor(expression: RegExp, written: string, offsets: Int32Array | undefined) {
    this.#expression = expression;
    this.#written = written;
    this.#offsets = offsets;
  }

  next(): boolean {
    let match = this.#exec(this.#from);
    if (match?.[0] === '' && match.index === this.#last) match = this.#exec(this.#last + 1);
    if (!match) return false;
    const end = match.index + match[0].length;
    this.#from = Math.max(end, match.index + 1);
    this.#last = end;
    this.begin = this.#offsets?.[match.index] ?? match.index;
    this.end = this.#offsets?.[end] ?? end;
    return true;
  }

  #exec(from: number): RegExpExecArray | null {
    this.#expression.lastIndex = from; // other texts may have been matched in between
    return this.#expression.exec(this.#written);
  }
}

function startOffsets(length: number, count: number): Int32Array {
  const offsets = new Int32Array(length + 1);
  for (let at = 0; at < count; at++) offsets[at] = at;
  return offsets;
}

function toKey({ source, ignoresCase }: Atom): string {
  return `${ignoresCase}${source}`;
}
