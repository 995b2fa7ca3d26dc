// Trajectories in their stored form: which blobs may be removed, which are referred to, and replacing one by a smaller form. A trigger
// notes the blob of each trajectory that is deleted.

import type { RolloutId } from '@millrace/protocol';
import type { Transaction } from '../../transaction.ts';
import type { StoredEnding } from './transitions.ts';
import { dropTurns } from './turn-log.ts';

/** The id of the store, which never changes. */
export async function storeId(transaction: Transaction): Promise<string> {
  return (await transaction.one<{ id: string }>('SELECT id FROM store_identity'))?.id ?? '';
}

export async function blobGarbage(transaction: Transaction, limit: number): Promise<string[]> {
  return (await transaction.all<{ key: string }>('SELECT key FROM blob_garbage LIMIT ?', limit)).map(({ key }) => key);
}

export async function forgetGarbage(transaction: Transaction, keys: readonly string[]): Promise<void> {
  for (const key of keys) await transaction.run('DELETE FROM blob_garbage WHERE key = ?', key);
}

/** Those of the keys that a row refers to. */
export async function knownBlobs(transaction: Transaction, keys: readonly string[]): Promise<string[]> {
  const find = (table: string) => transaction.allOf<{ blob: string }>(`SELECT blob FROM ${table} WHERE blob = ?`, keys);
  return [...(await find('trajectories')), ...(await find('loss_endings'))].map(({ blob }) => blob);
}

export interface TextTrajectory {
  readonly seq: number;
  readonly id: RolloutId;
  readonly attempt: number;
}

/** The first trajectories with text of rollouts that ended before this time. */
export async function trajectoriesWithText(
  transaction: Transaction,
  request: { readonly beforeMs: number; readonly after: number; readonly limit: number },
): Promise<TextTrajectory[]> {
  const sql = `SELECT seq, rollouts.id, rollouts.attempt FROM trajectories JOIN rollouts USING (seq)
    WHERE has_text = 1 AND seq > ? AND ended_at < ? ORDER BY seq LIMIT ?`;
  return await transaction.all<TextTrajectory>(sql, request.after, request.beforeMs, request.limit);
}

/** Stores it without text. False if it was deleted or replaced meanwhile. */
export async function replaceText(
  transaction: Transaction,
  request: { readonly seq: number } & Pick<StoredEnding, 'trajectory' | 'blob'>,
): Promise<boolean> {
  const { seq, trajectory = new Uint8Array(), blob } = request;
  const old = await transaction.one<{ blob: string | null }>(
    'SELECT blob FROM trajectories WHERE seq = ? AND has_text = 1 FOR UPDATE',
    seq,
  );
  if (!old) return false;
  await dropTurns(transaction, seq); // they have its text too
  const sql = 'UPDATE trajectories SET has_text = 0, body = ?, blob = ?, bytes = ? WHERE seq = ?';
  await transaction.run(sql, trajectory, blob?.key ?? null, blob?.bytes ?? null, seq);
  if (old.blob !== null) await transaction.run('INSERT INTO blob_garbage VALUES (?) ON CONFLICT DO NOTHING', old.blob);
  return true;
}
