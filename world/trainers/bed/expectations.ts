// What the tests of all trainers expect: advantages computed by hand, and rows that are those of the ledger.

import assert from 'node:assert/strict';
import { z } from 'zod';

/** The plans of three groups of four: with an unscored rollout, with branches on both sides, and one without a signal. */
const plans = [
  ['right', 'wrong', 'branched', 'unscored'],
  ['right', 'right', 'wrong', 'misled'],
  ['right', 'branched', 'right', 'right'],
] as const;

export const tasks = plans.map((plan, index) => ({
  question: `What is 1 + ${index} = ${index + 1}? [${plan.join(', ')}]`,
  answer: `${index + 1}`,
}));

const rewards: Readonly<Record<string, number | null>> = { right: 1, branched: 1, wrong: 0, misled: 0, unscored: null };

/** Of each rollout, in order. */
export const plannedRewards = plans.map((plan) => plan.map((course) => rewards[course] ?? null));

export const branch = z.object({ ids: z.array(z.int()), sampled: z.array(z.int()), logprobs: z.array(z.number()) });
export const ledger = z.record(
  z.string(),
  z.object({ reward: z.number().nullable(), group: z.string().nullable(), branches: z.array(branch) }),
);

interface GroupRule {
  /** What the number of members is reduced by in the variance. */
  readonly ddof: 0 | 1;
  readonly epsilon: number;
}

/** (reward - mean) / (deviation + epsilon) over the scored members; 0 for the others, and where all are equal. */
export function computeAdvantages(group: readonly (number | null)[], { ddof, epsilon }: GroupRule): number[] {
  const scored = group.filter((reward) => reward !== null);
  const mean = scored.reduce((sum, reward) => sum + reward, 0) / scored.length;
  const variance = scored.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / (scored.length - ddof);
  return group.map((reward) => (reward === null || variance === 0 ? 0 : (reward - mean) / (Math.sqrt(variance) + epsilon)));
}

export function assertClose(found: number, wanted: number, message: string): void {
  assert.ok(Math.abs(found - wanted) < 1e-4, `${message}: ${found}, not ${wanted}`);
}

/** The row has the ids of the branch, and trains exactly what was sampled in it, with its logprobs. */
export function assertExact(row: z.infer<typeof branch>, wanted: z.infer<typeof branch> | undefined, message: string): void {
  assert.deepEqual(row.ids, wanted?.ids, `${message}: ids`);
  assert.deepEqual(row.sampled, wanted?.sampled, `${message}: sampled`);
  for (const [index, logprob] of row.logprobs.entries()) assertClose(logprob, wanted?.logprobs[index] ?? Number.NaN, `${message}: logprob`);
}
