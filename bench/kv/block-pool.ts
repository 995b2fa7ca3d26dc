// The blocks of a paged KV cache, as vLLM keeps them: a block that no request holds stays in the prefix cache under its key until it is
// the least recently freed one and its place is needed.

export class BlockPool {
  readonly size: number;
  readonly #previous: Int32Array;
  readonly #next: Int32Array;
  readonly #held: Int32Array;
  /** The key under which a block is cached; -1 for a block without one. */
  readonly #keys: Float64Array;
  readonly #cached = new Map<number, number>();
  /** The ends of the list of free blocks; the first is taken next. */
  readonly #end: number;
  #free: number;

  constructor(size: number) {
    this.size = size;
    this.#free = size;
    this.#end = size;
    this.#previous = Int32Array.from({ length: size + 1 }, (_, i) => (i === 0 ? size : i - 1));
    this.#next = Int32Array.from({ length: size + 1 }, (_, i) => (i === size ? 0 : i + 1));
    this.#held = new Int32Array(size);
    this.#keys = new Float64Array(size).fill(-1);
  }

  /** Blocks that no request holds, whether they are cached or not. */
  get free(): number {
    return this.#free;
  }

  find(key: number): number | undefined {
    return this.#cached.get(key);
  }

  isHeld(block: number): boolean {
    return (this.#held[block] ?? 0) > 0;
  }

  /** Takes a block that was found. */
  hold(block: number): void {
    if (!this.isHeld(block)) this.#unlink(block);
    this.#held[block] = (this.#held[block] ?? 0) + 1;
  }

  /** Takes the block that was freed first; what it cached is lost. */
  take(): number {
    const block = this.#next[this.#end] ?? this.#end;
    if (block === this.#end) throw new Error('no block is free');
    const key = this.#keys[block] ?? -1;
    if (key >= 0) {
      if (this.#cached.get(key) === block) this.#cached.delete(key);
      this.#keys[block] = -1;
    }
    this.hold(block);
    return block;
  }

  /** The block is full: others with the same key may use it. */
  cache(block: number, key: number): void {
    if (this.#cached.has(key)) return;
    this.#cached.set(key, block);
    this.#keys[block] = key;
  }

  /** In the order in which they should be evicted. Blocks that are not cached are used again first. */
  release(blocks: Iterable<number>): void {
    for (const block of blocks) {
      this.#held[block] = (this.#held[block] ?? 1) - 1;
      if (this.isHeld(block)) continue;
      const isCached = (this.#keys[block] ?? -1) >= 0;
      this.#link(block, isCached ? (this.#previous[this.#end] ?? this.#end) : this.#end);
    }
  }

  clear(): void {
    this.#cached.clear();
    this.#keys.fill(-1);
  }

  #link(block: number, after: number): void {
    const next = this.#next[after] ?? this.#end;
    this.#next[after] = block;
    this.#previous[block] = after;
    this.#next[block] = next;
    this.#previous[next] = block;
    this.#free += 1;
  }

  #unlink(block: number): void {
    const [previous, next] = [this.#previous[block] ?? 0, this.#next[block] ?? 0];
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.#free -= 1;
  }
}
