// Judges a group by its rewards and those that may still come. Pure: the same rewards give the same verdict, and a verdict that
// ends a group never depends on missing rewards.

import type { BatchRequest, InformativeRule } from '@millrace/protocol';

interface GroupRewards {
  /** In the order in which the siblings ended. */
  readonly rewards: readonly number[];
  /** How many more may come, with replacements that are still allowed. */
  readonly mayCome: number;
}

export type Judging = Pick<BatchRequest, 'group_size' | 'informative' | 'min_samples' | 'min_rewards' | 'give_up_after'>;

/** `deliver`: the first `count` rewards; `uniform`: not informative; `failed`: too few rewards; `wait`: undecided. */
type Verdict = { readonly kind: 'deliver'; readonly count: number } | { readonly kind: 'uniform' | 'failed' | 'wait' };

export function judgeGroup({ rewards, mayCome }: GroupRewards, plan: Judging): Verdict {
  const counted = rewards.slice(0, plan.group_size);
  const informative = isInformative(counted, plan.informative);
  const complete = counted.length === plan.group_size || mayCome === 0;
  if (counted.length + mayCome < leastRewards(plan)) return { kind: 'failed' };
  if (informative && (complete || counted.length >= (plan.min_samples ?? plan.group_size)))
    return { kind: 'deliver', count: counted.length };
  if (complete) return { kind: 'uniform' };
  const { give_up_after: patience } = plan;
  if (patience !== undefined && counted.length >= patience && !isInformative(counted.slice(0, patience), plan.informative))
    return { kind: 'uniform' };
  return { kind: 'wait' };
}

/** The fewest rewards from which a group can be judged. */
export function leastRewards({ group_size, min_samples, min_rewards, informative }: Judging): number {
  const half = Math.ceil(group_size / 2);
  return Math.max(min_rewards ?? min_samples ?? half, informative.rule === 'rewards-differ' ? 2 : 1);
}

export function isInformative(rewards: readonly number[], rule: InformativeRule): boolean {
  if (rewards.length === 0) return false;
  switch (rule.rule) {
    case 'any':
      return true;
    case 'rewards-differ':
      return Math.max(...rewards) - Math.min(...rewards) > rule.tolerance;
    case 'mean-within': {
      const mean = rewards.reduce((total, reward) => total + reward, 0) / rewards.length;
      return mean > rule.above && mean < rule.below;
    }
  }
}
