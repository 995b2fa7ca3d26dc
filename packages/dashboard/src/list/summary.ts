// What the dashboard counts over all rollouts: failures by code, each with an example, and rewards by policy version and scenario.

import type { BriefRollout, DashboardSummary, FailureGroup, VersionPoint } from '@millrace/protocol';

const mostScenarios = 200;
const mostPoints = 5000;

export function summarise(rollouts: readonly BriefRollout[]): Omit<DashboardSummary, 'indexed' | 'complete'> {
  const counts = new Map<string, number>();
  for (const { scenario } of rollouts) counts.set(scenario, (counts.get(scenario) ?? 0) + 1);
  const scenarios = [...counts].map(([name, count]) => ({ name, count })).sort((one, other) => other.count - one.count);
  return { scenarios: scenarios.slice(0, mostScenarios), failures: groupFailures(rollouts), versions: groupVersions(rollouts) };
}

function groupFailures(rollouts: readonly BriefRollout[]): FailureGroup[] {
  const byCode = Map.groupBy(
    rollouts.filter(({ code }) => code !== null),
    ({ code }) => code,
  );
  const groups = [...byCode.values()].flatMap((some) => {
    const newest = some.reduce((best, one) => (timeOf(one) > timeOf(best) ? one : best));
    if (newest.code === null) return [];
    return {
      code: newest.code,
      blame: newest.blame ?? 'service',
      count: some.length,
      rewarded: some.filter(({ reward }) => reward !== null).length,
      scenarios: [...new Set(some.map(({ scenario }) => scenario))].sort().slice(0, 20),
      example: { id: newest.id, message: newest.message ?? '' },
      newest_at: timeOf(newest),
    };
  });
  return groups.sort((one, other) => other.count - one.count);
}

function timeOf({ ended_at, created_at }: BriefRollout): number {
  return ended_at ?? created_at;
}

type Rewarded = BriefRollout & { readonly reward: number; readonly version: number };

function groupVersions(rollouts: readonly BriefRollout[]): VersionPoint[] {
  const rewarded = rollouts.filter((one): one is Rewarded => one.reward !== null && one.version !== null);
  const highest = new Map<string, number>();
  for (const { scenario, reward } of rewarded) highest.set(scenario, Math.max(reward, highest.get(scenario) ?? reward));
  const byPoint = Map.groupBy(rewarded, ({ scenario, version }) => `${version} ${scenario}`);
  const points = [...byPoint.values()].flatMap((some) => {
    const [first] = some;
    return first === undefined ? [] : toPoint(first, some, highest.get(first.scenario) ?? first.reward);
  });
  return points.sort((one, other) => one.version - other.version).slice(-mostPoints);
}

function toPoint({ scenario, version }: Rewarded, some: readonly Rewarded[], best: number): VersionPoint {
  const mean = (value: (one: Rewarded) => number) => some.reduce((sum, one) => sum + value(one), 0) / some.length;
  const groups = [
    ...Map.groupBy(
      some.filter(({ group }) => group !== null),
      ({ group }) => group,
    ).values(),
  ].filter(({ length }) => length > 1);
  return {
    scenario,
    version,
    rollouts: some.length,
    mean_reward: mean(({ reward }) => reward),
    solved: mean(({ reward }) => (reward >= best ? 1 : 0)),
    informative: groups.length === 0 ? null : groups.filter(differ).length / groups.length,
    sampled: mean(({ sampled }) => sampled),
    turns: mean(({ turns }) => turns),
    first_at: some.reduce((first, one) => Math.min(first, timeOf(one)), Number.POSITIVE_INFINITY),
  };
}

function differ(group: readonly Rewarded[]): boolean {
  return group.some(({ reward }) => Math.abs(reward - (group[0]?.reward ?? reward)) > 1e-6);
}
