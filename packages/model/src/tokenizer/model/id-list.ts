// A growing list of token ids in one typed array: joining hundreds of thousands of small arrays at the end would block.

export class IdList {
  #ids = new Int32Array(256);
  #length = 0;

  push(id: number): void {
    if (this.#length === this.#ids.length) this.#grow(this.#length + 1);
    this.#ids[this.#length++] = id;
  }

  append(ids: Int32Array): void {
    const end = this.#length + ids.length;
    if (end > this.#ids.length) this.#grow(end);
    this.#ids.set(ids, this.#length);
    this.#length = end;
  }

  /** Not a copy: nothing may be added afterwards. */
  toIds(): Int32Array {
    return this.#ids.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const grown = new Int32Array(Math.max(needed, 2 * this.#ids.length));
    grown.set(this.#ids.subarray(0, this.#length));
    this.#ids = grown;
  }
}
