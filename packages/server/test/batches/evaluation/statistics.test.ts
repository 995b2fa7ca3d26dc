// The numbers of an evaluation, compared with direct computations.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ScoreCount } from '@millrace/store';
import { makeRandom } from '@millrace/testkit/plain';
import { estimateDraws, estimateMean, passAll, passAt } from '../../../src/batches/evaluation/statistics.ts';

/** Every way to draw k of n samples, the first `correct` of which are correct: the shares that hold one, and only such. */
function countDraws(k: number, n: number, correct: number): [number, number] {
  let [all, some, only] = [0, 0, 0];
  for (let drawn = 0; drawn < 2 ** n; drawn += 1) {
    const chosen = Array.from({ length: n }, (_, index) => (drawn >> index) & 1);
    if (chosen.reduce((sum, one) => sum + one, 0) !== k) continue;
    all += 1;
    if (chosen.slice(0, correct).includes(1)) some += 1;
    if (!chosen.slice(correct).includes(1)) only += 1;
  }
  return [some / all, only / all];
}

test('pass@k is the share of all draws of k samples that hold a correct one, and pass^k of those that hold no other', () => {
  for (let n = 1; n <= 8; n += 1)
    for (let correct = 0; correct <= n; correct += 1)
      for (let k = 1; k <= n; k += 1)
        for (const [index, chance] of [passAt(k, n, correct), passAll(k, n, correct)].entries())
          assert.ok(Math.abs(chance - (countDraws(k, n, correct)[index] ?? -1)) < 1e-12, `k ${k}, n ${n}, correct ${correct}`);
  assert.ok(Math.abs(passAt(512, 1024, 1) - 0.5) < 1e-12, 'large n neither overflow nor lose digits');
});

interface TaskScores {
  readonly rewards: readonly number[];
  /** Samples that ended without a reward. */
  readonly unscored?: number;
}

function toRecord(tasks: readonly TaskScores[], correctAt = 1) {
  const all = tasks.flatMap(({ rewards }) => rewards);
  const sum = all.reduce((total, one) => total + one, 0);
  const mean = all.length === 0 ? 0 : sum / all.length;
  const deviations = tasks.map(({ rewards }) => rewards.reduce((total, one) => total + one - mean, 0));
  const scores = tasks.map(({ rewards, unscored = 0 }): ScoreCount => {
    const correct = rewards.filter((one) => one >= correctAt).length;
    return { ended: rewards.length + unscored, scored: rewards.length, correct, tasks: 1 };
  });
  return { scores, rewards: { sum, squares: deviations.reduce((total, one) => total + one ** 2, 0) } };
}

function deviationOf(values: readonly number[]): number {
  const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
  return Math.sqrt(values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (values.length - 1));
}

test('with one sample a task the standard error is that of a plain mean', () => {
  const rewards = [1, 0, 0.5, 1, 0, 0.25];
  const { value, standard_error } = estimateMean(toRecord(rewards.map((one) => ({ rewards: [one] }))));
  assert.ok(Math.abs((value ?? 0) - 2.75 / 6) < 1e-12);
  assert.ok(Math.abs((standard_error ?? 0) - deviationOf(rewards) / Math.sqrt(6)) < 1e-12);
});

test('samples that only repeat the first of their task do not make the error smaller', () => {
  const first = [1, 0, 0, 1, 0.5];
  const [once, often] = [1, 16].map((n) => estimateMean(toRecord(first.map((one) => ({ rewards: Array.from({ length: n }, () => one) })))));
  assert.ok(once && often);
  assert.equal(often.value, once.value);
  assert.ok(Math.abs((often.standard_error ?? 0) - (once.standard_error ?? 1)) < 1e-12);
});

test('the clustered error is the spread of the mean over repeated evaluations, and the plain one is too small', () => {
  const random = makeRandom(7);
  const [tasks, n, runs] = [30, 8, 2000];
  const made = Array.from({ length: runs }, () =>
    toRecord(
      Array.from({ length: tasks }, () => {
        const chance = random() < 0.5 ? 0.1 : 0.9;
        return { rewards: Array.from({ length: n }, () => Number(random() < chance)) };
      }),
    ),
  );
  const estimates = made.map(estimateMean);
  const spread = deviationOf(estimates.map(({ value }) => value ?? 0));
  const claimed = estimates.reduce((sum, { standard_error }) => sum + (standard_error ?? 0), 0) / runs;
  assert.ok(Math.abs(claimed / spread - 1) < 0.06, `${claimed} for a spread of ${spread}`);
  const plain = Math.sqrt(0.25 / (tasks * n));
  assert.ok(plain < 0.5 * spread, `${plain} would be claimed if samples were independent`);
});

test('a sample without a reward is left out of the value, and counts as 0 and as wrong in the lower number', () => {
  const record = toRecord([
    { rewards: [1, 1, 0], unscored: 1 },
    { rewards: [1], unscored: 3 },
    { rewards: [], unscored: 4 },
  ]);
  assert.deepEqual(estimateMean(record), { ...estimateMean(record), value: 0.75, lower: 3 / 12, tasks: 2 });
  const [one, two, four] = estimateDraws(record.scores, 4, passAt);
  assert.ok(one && two && four);
  assert.ok(Math.abs((one.value ?? 0) - (2 / 3 + 1) / 2) < 1e-12);
  assert.deepEqual([one.tasks, two.tasks, four.tasks], [2, 1, 0], 'a task counts if it has k rewards');
  assert.ok(Math.abs((one.lower ?? 0) - (2 / 4 + 1 / 4 + 0) / 3) < 1e-12);
  assert.deepEqual([two.value, four.value, four.standard_error], [1, null, null]);
  assert.ok(Math.abs((four.lower ?? 0) - 2 / 3) < 1e-12);
});

test('nothing measured is no number, and one task has no error', () => {
  assert.deepEqual(estimateMean(toRecord([])), { value: null, standard_error: null, lower: null, tasks: 0 });
  assert.deepEqual(estimateMean(toRecord([{ rewards: [], unscored: 2 }])), { value: null, standard_error: null, lower: 0, tasks: 0 });
  assert.equal(estimateMean(toRecord([{ rewards: [1, 0] }])).standard_error, null);
  assert.deepEqual(
    estimateDraws([], 6, passAt).map(({ k }) => k),
    [1, 2, 4],
  );
});
