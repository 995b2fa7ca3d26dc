// Trajectories in their stored form: which blobs may be removed, which are referred to, and replacing one by a smaller form. A trigger
// notes the blob of each trajectory that is deleted.

import type { RolloutId } from '@millrace/protocol';
import type { Transaction } from '../engine/connection.ts';
import type { StoredEnding } from './transitions.ts';

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

export interface TextTrajectory {
  readonly seq: number;
  readonly id: RolloutId;
  readonly attempt: number;
}

/** The first trajectories with text of rollouts that ended before this time. */
export function trajectoriesWithText(
  transaction: Transaction,
  request: { readonly beforeMs: number; readonly after: number; readonly limit: number },
): TextTrajectory[] {
  const sql = `SELECT seq, rollouts.id, rollouts.attempt FROM trajectories JOIN rollouts USING (seq)
    WHERE has_text = 1 AND seq > ? AND ended_at < ? ORDER BY seq LIMIT ?`;
  return transaction.all<TextTrajectory>(sql, request.after, request.beforeMs, request.limit);
}

/** Stores it without text. False if it was deleted or replaced meanwhile. */
export function replaceText(
  transaction: Transaction,
  request: { readonly seq: number } & Pick<StoredEnding, 'trajectory' | 'blob'>,
): boolean {
  const { seq, trajectory = new Uint8Array(), blob } = request;
  const old = transaction.one<{ blob: string | null }>('SELECT blob FROM trajectories WHERE seq = ? AND has_text = 1', seq);
  if (!old) return false;
  const sql = 'UPDATE trajectories SET has_text = 0, body = ?, blob = ?, bytes = ? WHERE seq = ?';
  transaction.run(sql, trajectory, blob?.key ?? null, blob?.bytes ?? null, seq);
  if (old.blob !== null) transaction.run('INSERT OR IGNORE INTO blob_garbage VALUES (?)', old.blob);
  return true;
}
