// Arguments of a call by position or by name, as Python functions take them.

import { type KeywordArguments, toNumeric, type Value } from './values.ts';

/** Reads the arguments of one call by their Python names. */
export class Given {
  readonly #values: ReadonlyMap<string, Value>;

  constructor(what: string, names: readonly string[], { args, keywords }: { args: readonly Value[]; keywords: KeywordArguments }) {
    if (args.length > names.length) throw new Error(`${what}() takes at most ${names.length} arguments, not ${args.length}`);
    const values = new Map(args.map((value, index) => [names[index] ?? '', value]));
    for (const [name, value] of keywords) {
      if (!names.includes(name)) throw new Error(`${what}() has no argument ${name}`);
      values.set(name, value);
    }
    this.#values = values;
  }

  get(name: string): Value | undefined {
    return this.#values.get(name);
  }

  text(name: string): string | undefined {
    const value = this.get(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value !== 'string') throw new Error(`${name} must be a string`);
    return value;
  }

  needText(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw new Error(`${name} must be a string`);
    return value;
  }

  int(name: string): number | undefined {
    const value = this.get(name);
    if (value === undefined || value === null) return undefined;
    const number = toNumeric(value);
    if (typeof number !== 'bigint') throw new Error(`${name} must be an integer`);
    return Number(number);
  }
}
