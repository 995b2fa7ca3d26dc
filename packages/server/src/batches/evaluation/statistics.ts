// The numbers of an evaluation, from counts per task. Samples of one task are not independent, so every error is computed over tasks:
// a task is one observation, however many samples it has.

import type { Estimate, PassEstimate } from '@millrace/protocol';
import type { EvaluationRecord, ScoreCount } from '@millrace/store';

/**
 * The mean reward over all samples with a reward. Its error is that of a mean over clusters: the deviations of the samples of a task
 * are added up before they are squared, so samples that agree with each other do not count as more evidence.
 */
export function estimateMean({ scores, rewards }: Pick<EvaluationRecord, 'scores' | 'rewards'>): Estimate {
  const [scored, ended] = [countSamples(scores, 'scored'), countSamples(scores, 'ended')];
  const tasks = scores.reduce((total, one) => total + (one.scored > 0 ? one.tasks : 0), 0);
  return {
    value: scored === 0 ? null : rewards.sum / scored,
    standard_error: tasks < 2 ? null : Math.sqrt((rewards.squares * tasks) / (tasks - 1)) / scored,
    lower: ended === 0 ? null : rewards.sum / ended,
    tasks,
  };
}

export function countSamples(scores: readonly ScoreCount[], column: 'ended' | 'scored' | 'correct'): number {
  return scores.reduce((total, one) => total + one[column] * one.tasks, 0);
}

/** The chance of a draw of k of n samples, `correct` of which are correct. */
type DrawChance = (k: number, n: number, correct: number) => number;

/** For the powers of two up to `n`. */
export function estimateDraws(scores: readonly ScoreCount[], n: number, chanceOf: DrawChance): PassEstimate[] {
  const ks = Array.from({ length: Math.floor(Math.log2(n)) + 1 }, (_, power) => 2 ** power);
  return ks.map((k) => estimateDraw(scores, k, chanceOf));
}

function estimateDraw(scores: readonly ScoreCount[], k: number, chanceOf: DrawChance): PassEstimate {
  const measured = meanOf(
    scores.filter(({ scored }) => scored >= k).map(({ scored, correct, tasks }) => ({ value: chanceOf(k, scored, correct), tasks })),
  );
  const lower = meanOf(
    scores.filter(({ ended }) => ended >= k).map(({ ended, correct, tasks }) => ({ value: chanceOf(k, ended, correct), tasks })),
  );
  return { k, value: measured.mean, standard_error: measured.error, lower: lower.mean, tasks: measured.tasks };
}

/** pass@k, that at least one is correct: 1 - C(n - c, k) / C(n, k), without bias for any n from k on. */
export function passAt(k: number, n: number, correct: number): number {
  return 1 - drawOnly(k, n, n - correct);
}

/** pass^k, that all are correct: C(c, k) / C(n, k). */
export function passAll(k: number, n: number, correct: number): number {
  return drawOnly(k, n, correct);
}

/** The share of the ways to draw k of n that take only from `some` of them: C(some, k) / C(n, k). */
function drawOnly(k: number, n: number, some: number): number {
  if (some < k) return 0;
  let share = 1;
  for (let drawn = 0; drawn < k; drawn += 1) share *= (some - drawn) / (n - drawn);
  return share;
}

interface WeightedValue {
  readonly value: number;
  readonly tasks: number;
}

function meanOf(values: readonly WeightedValue[]): { mean: number | null; error: number | null; tasks: number } {
  const tasks = values.reduce((total, one) => total + one.tasks, 0);
  if (tasks === 0) return { mean: null, error: null, tasks };
  const mean = values.reduce((total, one) => total + one.value * one.tasks, 0) / tasks;
  const squares = values.reduce((total, one) => total + (one.value - mean) ** 2 * one.tasks, 0);
  return { mean, error: tasks < 2 ? null : Math.sqrt(squares / (tasks - 1) / tasks), tasks };
}
