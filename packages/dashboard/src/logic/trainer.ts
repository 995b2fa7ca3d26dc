// What trainers posted back, as charts and tokens need it.

import type { LogprobMismatch, TrainerSampleList, TrainerStepView } from '@millrace/protocol';
import { listBranches, type SegmentView } from './tokens.ts';

/** Of each token of a branch, in the order of its columns; NaN where the trainer said nothing. */
export interface TrainerColumns {
  readonly step: number;
  readonly run: string;
  readonly recomputed: Float32Array;
  readonly advantage: Float32Array;
  readonly kl: Float32Array;
}

/** From the newest step that has this branch; undefined if no trainer posted it. */
export function toTrainerColumns(
  segments: readonly SegmentView[],
  branch: number,
  { samples }: TrainerSampleList,
): TrainerColumns | undefined {
  const sample = samples.find((one) => one.branch === branch);
  if (sample === undefined) return undefined;
  const own = (listBranches(segments).get(branch) ?? []).flatMap((index) => segments[index] ?? []);
  const length = own.reduce((sum, { token_ids }) => sum + token_ids.length, 0);
  const make = () => new Float32Array(length).fill(Number.NaN);
  const columns = { run: sample.run, step: sample.step, recomputed: make(), advantage: make(), kl: make() };
  let [at, sampled] = [0, 0];
  for (const { mask, token_ids } of own) {
    for (let offset = 0; mask === 1 && offset < token_ids.length; offset++, sampled++) {
      columns.recomputed[at + offset] = sample.logprobs?.[sampled] ?? Number.NaN;
      columns.advantage[at + offset] = sample.advantages?.[sampled] ?? sample.advantage ?? Number.NaN;
      columns.kl[at + offset] = sample.kl?.[sampled] ?? Number.NaN;
    }
    at += token_ids.length;
  }
  return columns;
}

/** The steps after which the weights were of another version than after the step before. */
export function findWeightChanges(steps: readonly Pick<TrainerStepView, 'step' | 'policy_version'>[]): number[] {
  return steps.flatMap(({ step, policy_version }, index) => {
    const before = steps[index - 1]?.policy_version;
    return index > 0 && policy_version !== null && policy_version !== before ? [step] : [];
  });
}

/** The mean of |recomputed - recorded| for each backend over the steps. */
export function toMismatchLines(steps: readonly Pick<TrainerStepView, 'mismatch'>[]): { label: string; values: (number | null)[] }[] {
  const backends = [...new Set(steps.flatMap(({ mismatch }) => mismatch.map(({ backend }) => backend)))].sort();
  return backends.map((label) => ({
    label,
    values: steps.map(({ mismatch }) => meanOf(mismatch.filter(({ backend }) => backend === label))),
  }));
}

function meanOf(parts: readonly LogprobMismatch[]): number | null {
  const tokens = parts.reduce((sum, one) => sum + one.tokens, 0);
  return tokens === 0 ? null : parts.reduce((sum, one) => sum + one.mean_abs * one.tokens, 0) / tokens;
}
