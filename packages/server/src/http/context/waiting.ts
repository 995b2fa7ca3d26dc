// Why a queued rollout waits although machines are live: none of them has the labels that it requires.

import { definedOf, type MachineLabels, type MachineView, type RolloutView } from '@millrace/protocol';
import type { RolloutRecord } from '../../store/rollout-record.ts';
import { toRolloutView } from '../../store/rollout-view.ts';
import { hasLabels, labelsOf } from '../../store/work-class.ts';
import type { AppContext } from './context.ts';

/** The views of rollouts, with why each waits if no live machine can take it. */
export async function toWaitingViews(records: readonly RolloutRecord[], { status }: Pick<AppContext, 'status'>): Promise<RolloutView[]> {
  const machines = records.some(({ requires }) => requires !== undefined) ? ((await status.read()).machines ?? []) : [];
  return records.map((record) => {
    const waiting = record.requires && findMissing(record.requires, machines);
    return { ...toRolloutView(record), ...definedOf({ waiting }) };
  });
}

const mostNamed = 5;

/** Absent if a live machine has all of the labels. */
export function findMissing(requires: MachineLabels, machines: readonly MachineView[]): string | undefined {
  const live = machines.filter(({ state }) => state === 'live');
  if (live.some((machine) => hasLabels(labelsOf(machine), requires))) return undefined;
  const named = live.slice(0, mostNamed).map(({ name, labels }) => [name, describeLabels(labels)].filter((part) => part !== '').join(' '));
  const rest = live.length > mostNamed ? `, and ${live.length - mostNamed} more` : '';
  const seen = live.length === 0 ? 'no machine is live' : `live: ${named.join(', ')}${rest}`;
  return `no live machine has ${describeLabels(requires)} (${seen})`;
}

function describeLabels(labels: MachineLabels): string {
  return Object.entries(labels)
    .map(([name, value]) => (name.startsWith('scenario:') ? name : `${name}=${value}`))
    .join(' ');
}
