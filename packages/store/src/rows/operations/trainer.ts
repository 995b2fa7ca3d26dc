// What trainers posted back: one row for each step, and one for each branch of a rollout that came with it. Samples are much larger than
// steps and are kept for less time.

import type { RolloutId } from '@millrace/protocol';
import type { NewTrainerStep, PostedRun, TrainerStepQuery, TrainerStepRecord } from '../../trainer-store.ts';
import type { Transaction } from '../../transaction.ts';
import { openBudget, type RetainedSlice } from './retention.ts';

export interface StoredSample {
  readonly rollout: RolloutId;
  readonly branch: number;
  /** The sample as JSON, compressed. */
  readonly body: Uint8Array;
}

interface StepRow {
  readonly run: string;
  readonly step: number;
  readonly at: number;
  readonly samples: number;
  readonly body: string;
}

export async function putTrainerStep(
  transaction: Transaction,
  { step: { run, step, ...body }, samples }: { readonly step: NewTrainerStep; readonly samples: readonly StoredSample[] },
): Promise<number> {
  const { nowMs } = transaction;
  const known = 'SELECT seq FROM trainer_steps WHERE run = ? AND step = ? FOR UPDATE';
  const row = await transaction.one<{ seq: number }>(known, run, step);
  if (row) {
    await transaction.run('DELETE FROM trainer_samples WHERE step_seq = ?', row.seq);
    await transaction.run('DELETE FROM trainer_steps WHERE seq = ?', row.seq);
  }
  const values = [[run, step, nowMs, samples.length, JSON.stringify(body)]];
  const [seq = 0] = await transaction.insertNumbered('trainer_steps (run, step, at, samples, body)', values);
  if (samples.length > 0) {
    const rows = samples.map((one) => [one.rollout, seq, one.branch, one.body]);
    await transaction.insert('trainer_samples (rollout, step_seq, branch, body)', rows);
  }
  const { policy_version, mismatch, alarm } = body;
  const tokens = mismatch.reduce((sum, one) => sum + one.tokens, 0);
  const meanAbs = tokens === 0 ? undefined : mismatch.reduce((sum, one) => sum + one.mean_abs * one.tokens, 0) / tokens;
  const data = { run, step, policy_version, ...(meanAbs === undefined ? {} : { mean_abs: meanAbs, alarm }) };
  await transaction.appendEvent({ kind: 'trainer-step', data });
  return nowMs;
}

export async function trainerSteps(transaction: Transaction, { run, order, after, limit }: TrainerStepQuery): Promise<TrainerStepRecord[]> {
  const isNewest = order === 'newest';
  const from = after ?? (isNewest ? Number.MAX_SAFE_INTEGER : -1);
  const sql = `SELECT run, step, at, samples, body FROM trainer_steps WHERE run = ? AND step ${isNewest ? '<' : '>'} ?
    ORDER BY step ${isNewest ? 'DESC' : ''} LIMIT ?`;
  const rows = await transaction.all<StepRow>(sql, run, from, limit);
  return rows.map(({ at, body, ...row }) => ({ ...JSON.parse(body), ...row, atMs: at }));
}

export async function trainerRuns(transaction: Transaction): Promise<PostedRun[]> {
  const sql = 'SELECT run, count(*) AS steps, max(at) AS newest FROM trainer_steps GROUP BY run ORDER BY newest DESC, run';
  const rows = await transaction.all<{ run: string; steps: number; newest: number }>(sql);
  return rows.map(({ run, steps, newest }) => ({ run, steps, newestAtMs: newest }));
}

interface PostedRow {
  readonly run: string;
  readonly step: number;
  readonly at: number;
  readonly step_body: string;
  readonly body: Uint8Array;
}

export async function trainerSamples(transaction: Transaction, rollout: RolloutId): Promise<PostedRow[]> {
  const sql = `SELECT run, step, at, s.body AS step_body, t.body AS body FROM trainer_samples t JOIN trainer_steps s ON s.seq = t.step_seq
    WHERE t.rollout = ? ORDER BY at DESC, run, step DESC, branch`;
  return await transaction.all<PostedRow>(sql, rollout);
}

const stepsPerSlice = 20;

/** Deletes samples of old steps, and then steps that are much older. */
export async function retainTrainerSlice(
  transaction: Transaction,
  { samplesBeforeMs, stepsBeforeMs }: { readonly samplesBeforeMs: number; readonly stepsBeforeMs: number },
): Promise<RetainedSlice> {
  const isSpent = openBudget();
  const sql = 'SELECT seq FROM trainer_steps WHERE samples > 0 AND at < ? ORDER BY at LIMIT ?';
  const old = await transaction.all<{ seq: number }>(sql, samplesBeforeMs, stepsPerSlice);
  for (const [index, { seq }] of old.entries()) {
    await transaction.run('DELETE FROM trainer_samples WHERE step_seq = ?', seq);
    await transaction.run('UPDATE trainer_steps SET samples = 0 WHERE seq = ?', seq);
    if (isSpent() && index < old.length - 1) return { rollouts: 0, more: true };
  }
  if (old.length === stepsPerSlice) return { rollouts: 0, more: true };
  const oldest = 'SELECT seq FROM trainer_steps WHERE samples = 0 AND at < ? ORDER BY at LIMIT ?';
  const deleted = await transaction.run(`DELETE FROM trainer_steps WHERE seq IN (${oldest})`, stepsBeforeMs, 200);
  return { rollouts: 0, more: deleted === 200 };
}
