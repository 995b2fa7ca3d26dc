// The words of a Dockerfile's instruction: quotes, escapes, and variables in the forms that Docker knows.

import { RolloutError } from '@millrace/protocol';

export type Variables = Readonly<Record<string, string>>;

/** One word with quotes removed and variables replaced. An unset variable is empty. */
export function expandWord(word: string, variables: Variables): string {
  return new WordReader(word, variables).read();
}

/** Splits at white space outside of quotes, and expands each word. */
export function splitWords(text: string, variables: Variables): string[] {
  return splitRaw(text).map((word) => expandWord(word, variables));
}

/** `a=1 b="2 3"`, or the old form `a 1 and the rest`. */
export function readPairs(text: string, variables: Variables): [string, string][] {
  const words = splitRaw(text);
  if (!words[0]?.includes('=')) {
    const [, name = '', value = ''] = /^(\S+)\s+(.*)$/s.exec(text) ?? [];
    if (name === '') throw new RolloutError('sandbox-refused', `${text} is not NAME=VALUE`);
    return [[name, expandWord(value, variables)]];
  }
  return words.map((word) => {
    const at = word.indexOf('=');
    if (at < 1) throw new RolloutError('sandbox-refused', `${word} is not NAME=VALUE`);
    return [expandWord(word.slice(0, at), variables), expandWord(word.slice(at + 1), variables)];
  });
}

function splitRaw(text: string): string[] {
  return text.match(/(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\]|["'\\])+/gs) ?? [];
}

class WordReader {
  readonly #text: string;
  readonly #variables: Variables;
  #at = 0;

  constructor(text: string, variables: Variables) {
    this.#text = text;
    this.#variables = variables;
  }

  read(): string {
    let result = '';
    let quote = '';
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at] ?? '';
      if (char === quote) quote = this.#skip('');
      else if (quote === '' && (char === '"' || char === "'")) quote = this.#skip(char);
      else if (char === '\\' && quote !== "'") result += this.#readEscape(quote);
      else if (char === '$' && quote !== "'") result += this.#readVariable();
      else result += this.#skip(char);
    }
    return result;
  }

  /** Moves on by one character, and returns `value`. */
  #skip(value: string): string {
    this.#at += 1;
    return value;
  }

  #readEscape(quote: string): string {
    const next = this.#text[this.#at + 1] ?? '';
    this.#at += 2;
    return quote === '"' && !/["$\\]/.test(next) ? `\\${next}` : next;
  }

  #readVariable(): string {
    const rest = this.#text.slice(this.#at);
    const [plain, plainName] = /^\$(\w+)/.exec(rest) ?? [];
    if (plain !== undefined && plainName !== undefined) {
      this.#at += plain.length;
      return this.#variables[plainName] ?? '';
    }
    const [whole, name = '', operator, word = ''] = /^\$\{(\w+)(?:(:?[-+?])((?:[^{}]|\$\{[^}]*\})*))?\}/.exec(rest) ?? [];
    if (whole === undefined) {
      if (rest.startsWith('${'))
        throw new RolloutError('sandbox-refused', `${rest.slice(0, 40)} is a form of variable that is not supported`);
      return this.#skip('$');
    }
    this.#at += whole.length;
    const value = this.#variables[name];
    if (operator === undefined) return value ?? '';
    const isSet = value !== undefined && !(operator.startsWith(':') && value === '');
    if (operator.endsWith('+')) return isSet ? expandWord(word, this.#variables) : '';
    if (isSet) return value;
    if (operator.endsWith('-')) return expandWord(word, this.#variables);
    throw new RolloutError('sandbox-refused', `the variable ${name} is not set: ${word}`);
  }
}
