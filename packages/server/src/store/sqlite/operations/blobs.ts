// Rows about blobs: what may be removed, and what is referred to. A trigger notes the blob of each trajectory that is deleted.

import type { Transaction } from '../engine/connection.ts';

/** The id of the store, which never changes. */
export function storeId(transaction: Transaction): string {
  return transaction.one<{ id: string }>('SELECT id FROM store_identity')?.id ?? '';
}

export function blobGarbage(transaction: Transaction, limit: number): string[] {
  return transaction.all<{ key: string }>('SELECT key FROM blob_garbage LIMIT ?', limit).map(({ key }) => key);
}

export function forgetGarbage(transaction: Transaction, keys: readonly string[]): void {
  for (const key of keys) transaction.run('DELETE FROM blob_garbage WHERE key = ?', key);
}

/** Those of the keys that a row refers to. */
export function knownBlobs(transaction: Transaction, keys: readonly string[]): string[] {
  return keys.filter((key) => transaction.one('SELECT seq FROM trajectories WHERE blob = ?', key) !== undefined);
}
