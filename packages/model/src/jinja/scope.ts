// Variables of a template. A loop, a macro and a block have their own; what they set is not seen outside.

import { Undefined, type Value } from './values/values.ts';

export class Scope {
  readonly #parent: Scope | undefined;
  readonly #values: Map<string, Value>;

  constructor(parent: Scope | undefined, values: Iterable<readonly [string, Value]> = []) {
    this.#parent = parent;
    this.#values = new Map(values);
  }

  get(name: string): Value {
    const own = this.#values.get(name);
    if (own !== undefined) return own;
    return this.#parent ? this.#parent.get(name) : new Undefined(`'${name}' is undefined`);
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }
}
