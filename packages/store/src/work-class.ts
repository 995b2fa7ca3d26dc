// Classes of work: what shares the workers fairly. Each batch, each evaluation run, and the plain submissions of each key are one. What
// requires labels of a machine is a class apart, so that a claim passes over all of it at once.

import type { MachineLabels, MachineReport } from '@millrace/protocol';

export type ClassKind = 'plain' | 'batch' | 'evaluation';

export interface WorkClass {
  readonly kind: ClassKind;
  /** The id of the batch or evaluation; of plain submissions, the name of their key. */
  readonly name: string;
  /** A class with twice the weight gets twice the slots while both have work. */
  readonly weight: number;
  /** Only machines with these labels claim it. */
  readonly requires?: MachineLabels | undefined;
}

/** The name under which a class is stored: one with requirements has them after a line feed, which no other name contains. */
export function toStoredName({ name, requires = {} }: Pick<WorkClass, 'name' | 'requires'>): string {
  const sorted = Object.entries(requires).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return sorted.length === 0 ? name : `${name}\n${JSON.stringify(Object.fromEntries(sorted))}`;
}

export function fromStoredName(stored: string): Pick<WorkClass, 'name' | 'requires'> {
  const at = stored.indexOf('\n');
  return at < 0 ? { name: stored } : { name: stored.slice(0, at), requires: JSON.parse(stored.slice(at + 1)) };
}

export function hasLabels(labels: MachineLabels, requires: MachineLabels = {}): boolean {
  return Object.entries(requires).every(([name, value]) => labels[name] === value);
}

/** What work can require of a machine: its labels and its scenarios. */
export function labelsOf({ labels, scenarios = [] }: Pick<MachineReport, 'labels' | 'scenarios'>): MachineLabels {
  return { ...labels, ...Object.assign({}, ...scenarios.map(toScenarioLabel)) };
}

/** A colon is in no label that a user gives. */
export function toScenarioLabel(scenario: string): MachineLabels {
  return { [`scenario:${scenario}`]: 'loaded' };
}

export interface ClassLoad extends WorkClass {
  readonly priority: number;
  /** Replacements and the last groups of a batch: claimed before other work of the same priority. */
  readonly isUrgent: boolean;
  readonly queued: number;
  /** From init to run. */
  readonly active: number;
}

export const plainClass: WorkClass = { kind: 'plain', name: '', weight: 1 };

/** The classes of one priority share; a class of higher rank goes first. */
export function rankOf({
  priority = 0,
  isUrgent = false,
}: {
  readonly priority?: number | undefined;
  readonly isUrgent?: boolean;
}): number {
  return 2 * priority + Number(isUrgent);
}

interface Demand {
  readonly rank: number;
  readonly weight: number;
  /** Rollouts that hold or want a slot. */
  readonly wanted: number;
}

/**
 * The slots that a class may fill: all that classes of higher rank leave, shared by weight with those of the same rank. What
 * another class does not need, because it wants less than its share, is divided among the rest.
 */
export function shareOf(own: Omit<Demand, 'wanted'>, others: readonly Demand[], slots: number): number {
  const above = others.filter(({ rank }) => rank > own.rank).reduce((total, { wanted }) => total + wanted, 0);
  const rivals = others.filter(({ rank }) => rank === own.rank).toSorted((a, b) => a.wanted / a.weight - b.wanted / b.weight);
  let left = Math.max(0, slots - above);
  let weights = rivals.reduce((total, { weight }) => total + weight, own.weight);
  for (const { wanted, weight } of rivals) {
    if (wanted / weight > left / weights) break;
    left -= wanted;
    weights -= weight;
  }
  return Math.floor((left * own.weight) / weights);
}
