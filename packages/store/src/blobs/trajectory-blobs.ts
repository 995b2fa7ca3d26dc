// Trajectories as blobs: written under a key of their own before their row is committed, and removed after their row is deleted. A blob
// that no row refers to, because its write failed, is found by a sweep and removed.

import { createHash, randomUUID } from 'node:crypto';
import { messageOf, RolloutError, type RolloutId } from '@millrace/protocol';
import { StoreFault } from '../store-fault.ts';
import type { BlobStore } from './blob-store.ts';

const keysPerStep = 500;
/** A younger blob may belong to a row that is about to be committed. */
export const sweepAfterMs = 86_400_000;

export interface BlobRows {
  /** Keys of blobs whose rows were deleted. */
  readGarbage(limit: number): Promise<readonly string[]>;
  forgetGarbage(keys: readonly string[]): Promise<void>;
  /** Those of the keys that a row refers to. */
  findKnown(keys: readonly string[]): Promise<readonly string[]>;
}

export class TrajectoryBlobs {
  readonly #blobs: BlobStore;
  /** Begins with the id of the store, so that stores which share a place do not remove each other's blobs. */
  readonly #prefix: string;

  constructor(blobs: BlobStore, storeId: string) {
    this.#blobs = blobs;
    this.#prefix = `trajectories/${storeId}/`;
  }

  /** Returns the key, which no other call gets. It ends with the checksum of the content, so that a row knows what its blob must hold. */
  async put(
    claim: { readonly id: RolloutId; readonly attempt: number },
    { bytes, sha256 }: { readonly bytes: Uint8Array; readonly sha256: string },
  ): Promise<string> {
    const name = createHash('sha256').update(claim.id).digest('hex');
    const key = `${this.#prefix}${name.slice(0, 2)}/${name.slice(2, 34)}-${claim.attempt}-${randomUUID()}-${sha256}`;
    await this.#call(() => this.#blobs.put(key, bytes));
    return key;
  }

  /** Throws `trajectory-missing` if it is not there. */
  async get(id: RolloutId, key: string): Promise<Buffer> {
    const bytes = await this.#call(() => this.#blobs.get(key));
    if (bytes === undefined) throw missingBlob(id, `${key} is not in ${this.#blobs.name}`);
    return bytes;
  }

  /** For a blob whose row was not written. If it fails, a sweep removes the blob. */
  async discard(key: string): Promise<void> {
    try {
      await this.#blobs.delete([key]);
    } catch {} // the sweep finds it
  }

  /** Throws a StoreFault if nothing can be written. */
  async check(): Promise<void> {
    await this.#call(() => this.#blobs.put(`${this.#prefix}health`, Buffer.from('ok')));
  }

  async freeBytes(): Promise<number> {
    return (await this.#blobs.freeBytes?.()) ?? Number.POSITIVE_INFINITY;
  }

  /** Removes the blobs of deleted rows. Returns how many. */
  async removeGarbage(rows: BlobRows): Promise<number> {
    for (let removed = 0; ; ) {
      const keys = await rows.readGarbage(keysPerStep);
      if (keys.length === 0) return removed;
      await this.#call(() => this.#blobs.delete(keys));
      await rows.forgetGarbage(keys);
      removed += keys.length;
    }
  }

  /** Removes old blobs of this store that no row refers to. Returns how many. */
  async sweep(rows: BlobRows, nowMs: number): Promise<number> {
    let [removed, old]: [number, string[]] = [0, []];
    const flush = async () => {
      const known = new Set(await rows.findKnown(old));
      const orphans = old.filter((key) => !known.has(key));
      await this.#call(() => this.#blobs.delete(orphans));
      removed += orphans.length;
      old = [];
    };
    for await (const { key, changedAtMs } of this.#blobs.list(this.#prefix)) {
      if (changedAtMs < nowMs - sweepAfterMs) old.push(key);
      if (old.length >= keysPerStep) await flush();
    }
    if (old.length > 0) await flush();
    return removed;
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw new StoreFault(`blobs in ${this.#blobs.name}: ${messageOf(error)}`, 'the store of trajectories failed');
    }
  }
}

/** Absent from the keys of older versions. */
export function readChecksum(key: string): string | undefined {
  return /^-([0-9a-f]{64})$/.exec(key.slice(-65))?.[1];
}

export function missingBlob(id: RolloutId, why: string): RolloutError {
  const message = `the trajectory of rollout ${id} is missing: ${why}`;
  return new RolloutError(
    'trajectory-missing',
    `${message}. It was removed by other means, or store.blobs names another place than before`,
  );
}
