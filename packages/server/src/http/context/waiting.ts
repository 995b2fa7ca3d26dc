// Why a queued rollout or an evaluation waits although machines are live: none of them has the labels that it requires.

import { definedOf, type EvaluationView, type MachineLabels, type MachineView, type RolloutView } from '@millrace/protocol';
import { type EvaluationRecord, hasLabels, labelsOf, type RolloutRecord, toRolloutView } from '@millrace/store';
import { toEvaluationView } from '../../batches/evaluation/evaluation-view.ts';

/** Where the machines of the service are read. */
interface MachineReader {
  read(): Promise<{ readonly machines?: readonly MachineView[] | undefined }>;
}

/** The views of rollouts, with why each waits if no live machine can take it. */
export async function toWaitingViews(
  records: readonly RolloutRecord[],
  { status }: { readonly status: MachineReader },
): Promise<RolloutView[]> {
  const machines = await readMachines(records, status);
  return records.map((record) => {
    const waiting = record.requires && findMissing(record.requires, machines);
    return { ...toRolloutView(record), ...definedOf({ waiting }) };
  });
}

/** The views of evaluations, with why the samples of each wait if no live machine can take them. */
export async function toWaitingEvaluations(
  records: readonly EvaluationRecord[],
  { status }: { readonly status: MachineReader },
): Promise<EvaluationView[]> {
  const open = records.map(({ state, plan }) => definedOf({ requires: state === 'open' ? plan.requires : undefined }));
  const machines = await readMachines(open, status);
  return records.map((record, index) => {
    const requires = open[index]?.requires;
    return { ...toEvaluationView(record), ...definedOf({ waiting: requires && findMissing(requires, machines) }) };
  });
}

/** Read only if one of them requires a label. */
async function readMachines(all: readonly { readonly requires?: MachineLabels }[], status: MachineReader): Promise<readonly MachineView[]> {
  return all.some(({ requires }) => requires !== undefined) ? ((await status.read()).machines ?? []) : [];
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
