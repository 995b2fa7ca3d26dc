// How a rollout ends if its worker is lost while it is judged. It belongs to one attempt, and whatever else happens to the rollout drops it.
// A trigger notes the blob of each that is deleted.

import type { RolloutResult } from '@millrace/protocol';
import type { Transaction } from '../../../transaction.ts';

/** A result, and its trajectory in stored form. */
export interface LossEnding {
  readonly result: RolloutResult;
  readonly trajectory?: Uint8Array;
  /** Instead of `trajectory`, if it was written as a blob. */
  readonly blob?: { readonly key: string; readonly bytes: number };
}

interface AttemptOfRow {
  readonly seq: number;
  readonly attempt: number;
}

export async function writeLossEnding(transaction: Transaction, { seq, attempt }: AttemptOfRow, ending: LossEnding): Promise<void> {
  const { result, trajectory = new Uint8Array(), blob } = ending;
  await dropLossEnding(transaction, seq);
  const sql = 'INSERT INTO loss_endings (seq, attempt, result, body, blob, bytes) VALUES (?, ?, ?, ?, ?, ?)';
  await transaction.run(sql, seq, attempt, JSON.stringify(result), trajectory, blob?.key ?? null, blob?.bytes ?? null);
}

/** Absent if there is none for this attempt. Its blob belongs to the caller from now on. */
export async function takeLossEnding(transaction: Transaction, { seq, attempt }: AttemptOfRow): Promise<LossEnding | undefined> {
  const sql = 'SELECT result, body, blob, bytes FROM loss_endings WHERE seq = ? AND attempt = ? FOR UPDATE';
  const row = await transaction.one<{ result: string; body: Uint8Array; blob: string | null; bytes: number | null }>(sql, seq, attempt);
  if (!row) return undefined;
  await transaction.run('UPDATE loss_endings SET blob = NULL WHERE seq = ?', seq);
  const kept = row.blob === null ? { trajectory: row.body } : { blob: { key: row.blob, bytes: row.bytes ?? 0 } };
  return { result: JSON.parse(row.result), ...kept };
}

export async function dropLossEnding(transaction: Transaction, seq: number): Promise<void> {
  await transaction.run('DELETE FROM loss_endings WHERE seq = ?', seq);
}
