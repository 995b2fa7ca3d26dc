// The two tables of byte-pair merging: which pairs merge into what, and which pair is next.

/** Maps a pair of ids to its rank and merged id: open addressing in one typed array, because there are hundreds of thousands. */
export class MergeTable {
  readonly #cells: Int32Array;
  readonly #mask: number;

  constructor(size: number) {
    const capacity = 2 ** Math.ceil(Math.log2(2 * size + 2));
    this.#cells = new Int32Array(4 * capacity).fill(-1);
    this.#mask = capacity - 1;
  }

  /** A pair that is added twice keeps the later rank, as in a Map. */
  add(left: number, right: number, { rank, merged }: { rank: number; merged: number }): void {
    const [cells, at] = [this.#cells, 4 * this.#probe(left, right)];
    cells[at] = left;
    cells[at + 1] = right;
    cells[at + 2] = rank;
    cells[at + 3] = merged;
  }

  find(left: number, right: number): number {
    const slot = this.#probe(left, right);
    return this.#cells[4 * slot] === left ? slot : -1;
  }

  rankAt(slot: number): number {
    return this.#cells[4 * slot + 2] ?? -1;
  }

  mergedAt(slot: number): number {
    return this.#cells[4 * slot + 3] ?? -1;
  }

  #probe(left: number, right: number): number {
    const cells = this.#cells;
    let hash = Math.imul(Math.imul(left, 0x9e37_79b1) + right, 0x85eb_ca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
    let slot = (hash ^ (hash >>> 16)) & this.#mask;
    while (cells[4 * slot] !== -1 && (cells[4 * slot] !== left || cells[4 * slot + 1] !== right)) slot = (slot + 1) & this.#mask;
    return slot;
  }
}

const positions = 2 ** 32;
export const isEmpty = -1;
export const isStale = -2;

/** A heap of ranks and positions, each pair in one number. An entry stays when its pair changes, and is then stale. */
export class MergeQueue {
  #heap: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#heap = new Float64Array(capacity);
  }

  clear(): void {
    this.#size = 0;
  }

  push(rank: number, at: number): void {
    if (this.#size === this.#heap.length) this.#grow();
    const heap = this.#heap;
    const key = rank * positions + at;
    let node = this.#size++;
    while (node > 0) {
      const parent = (node - 1) >> 1;
      const above = heap[parent] ?? 0;
      if (above <= key) break;
      heap[node] = above;
      node = parent;
    }
    heap[node] = key;
  }

  /** The position of the next pair to merge; `isStale` if that pair has changed since, `isEmpty` at the end. */
  pop(table: MergeTable, slots: Int32Array): number {
    if (this.#size === 0) return isEmpty;
    const key = this.#heap[0] ?? 0;
    this.#removeFirst();
    const rank = Math.floor(key / positions);
    const at = key - rank * positions;
    const slot = slots[at] ?? -1;
    return slot >= 0 && table.rankAt(slot) === rank ? at : isStale;
  }

  #grow(): void {
    const grown = new Float64Array(2 * this.#size + 16);
    grown.set(this.#heap);
    this.#heap = grown;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const key = heap[--this.#size] ?? 0;
    let node = 0;
    for (let child = 1; child < this.#size; child = 2 * node + 1) {
      if (child + 1 < this.#size && (heap[child + 1] ?? 0) < (heap[child] ?? 0)) child += 1;
      const below = heap[child] ?? 0;
      if (below >= key) break;
      heap[node] = below;
      node = child;
    }
    heap[node] = key;
  }
}
