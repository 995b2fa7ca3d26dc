// Registered task files. The offsets of the lines are indexed once and each task is read by its offset, so a file can be much
// larger than memory. The order of a round is a function of seed and round, so a cursor is a single number.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { RolloutError, type TaskSource } from '@millrace/protocol';

interface IndexedFile {
  readonly path: string;
  /** The byte offsets of each non-empty line. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** Of its content. */
  readonly digest: string;
}

export interface DrawnLine {
  readonly text: string;
  /** Counted from 1. */
  readonly line: number;
}

export class TaskFiles {
  readonly #paths: Readonly<Record<string, string>>;
  readonly #indexed = new Map<string, Promise<IndexedFile>>();
  readonly #orders = new Map<string, Uint32Array>();
  /** Cursors from whose position on every line was refused. */
  readonly #spent = new Map<string, number>();

  constructor(paths: Readonly<Record<string, string>>) {
    this.#paths = paths;
  }

  /** Remembers that no line from this position on is a valid task, so that they are neither read nor reported again. */
  markSpent(cursor: string, position: number): void {
    this.#spent.set(cursor, position);
  }

  isSpent(cursor: string, position: number): boolean {
    return this.#spent.get(cursor) === position;
  }

  names(): readonly string[] {
    return Object.keys(this.#paths);
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#paths, name);
  }

  /** Lines in one round. */
  async count(name: string): Promise<number> {
    return (await this.#index(name)).starts.length;
  }

  /** Of its content, as this server first read it. */
  async digest(name: string): Promise<string> {
    return (await this.#index(name)).digest;
  }

  /** The line at a cursor position; absent after the last round. */
  async read({ file, shuffle_seed, rounds }: TaskSource, position: number): Promise<DrawnLine | undefined> {
    const { path, starts, ends } = await this.#index(file);
    const count = starts.length;
    const round = Math.floor(position / count);
    if (count === 0 || (rounds !== undefined && round >= rounds)) return undefined;
    const at = position % count;
    const index = shuffle_seed === undefined ? at : (this.#order(file, count, { seed: shuffle_seed, round })[at] ?? at);
    const [start = 0, end = 0] = [starts[index], ends[index]];
    await using handle = await open(path);
    return { text: await readRange(handle, start, end), line: index + 1 };
  }

  #index(name: string): Promise<IndexedFile> {
    const path = this.#paths[name];
    if (path === undefined || !this.has(name)) throw new RolloutError('bad-request', `no task file is named ${JSON.stringify(name)}`);
    const known = this.#indexed.get(name) ?? indexLines(path);
    this.#indexed.set(name, known);
    known.catch(() => this.#indexed.delete(name)); // the next call tries again
    return known;
  }

  /** Caches a few shuffled orders. */
  #order(file: string, count: number, by: { readonly seed: number; readonly round: number }): Uint32Array {
    const key = `${file}\n${by.seed}\n${by.round}`;
    const known = this.#orders.get(key);
    if (known?.length === count) return known;
    const order = shuffle(count, by);
    if (this.#orders.size >= 8) this.#orders.clear();
    this.#orders.set(key, order);
    return order;
  }
}

async function readRange(handle: FileHandle, start: number, end: number): Promise<string> {
  const buffer = Buffer.alloc(end - start);
  await handle.read(buffer, 0, buffer.length, start);
  return buffer.toString();
}

async function indexLines(path: string): Promise<IndexedFile> {
  const [starts, ends]: [number[], number[]] = [[], []];
  let [at, start, blank] = [0, 0, true];
  const close = (end: number) => {
    if (!blank) {
      starts.push(start);
      ends.push(end);
    }
    [start, blank] = [end + 1, true];
  };
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) {
    hash.update(chunk as Buffer);
    for (const byte of chunk as Buffer) {
      if (byte === 10) close(at);
      else if (byte > 32) blank = false;
      at += 1;
    }
  }
  close(at);
  return { path, starts, ends, digest: hash.digest('hex') };
}

/** A Fisher-Yates shuffle with mulberry32. */
export function shuffle(count: number, { seed, round }: { readonly seed: number; readonly round: number }): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, index) => index);
  let state = (Math.imul(seed, 0x9e3779b1) + Math.imul(round + 1, 0x85ebca6b)) >>> 0;
  for (let last = count - 1; last > 0; last -= 1) {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    const other = Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * (last + 1));
    const kept = order[last] ?? 0;
    order[last] = order[other] ?? 0;
    order[other] = kept;
  }
  return order;
}
