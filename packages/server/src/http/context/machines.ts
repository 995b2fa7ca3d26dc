// Workers grouped by the machine that they run on.

import { type MachineReport, type MachineView, machineStates } from '@millrace/protocol';
import { toTime, type WorkerRecord } from '@millrace/store';

export interface SeenWorker {
  readonly worker: WorkerRecord;
  readonly isAlive: boolean;
}

/**
 * Live machines first, then by name. A worker that reports no machine counts for a machine with the name of its host. A machine whose workers
 * have different labels is one for each set of labels.
 */
export function toMachines(seen: readonly SeenWorker[], nowMs: number): MachineView[] {
  const byMachine = new Map<string, SeenWorker[]>();
  for (const one of seen) {
    const { id, labels } = machineOf(one.worker);
    const key = JSON.stringify([id, ...Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))]);
    byMachine.set(key, [...(byMachine.get(key) ?? []), one]);
  }
  const rank = ({ state }: MachineView) => machineStates.indexOf(state);
  return [...byMachine.values()]
    .map((workers) => toMachine(workers, nowMs))
    .sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

function toMachine(seen: readonly SeenWorker[], nowMs: number): MachineView {
  const newest = seen.reduce((best, one) => (one.worker.startedAtMs > best.worker.startedAtMs ? one : best));
  const live = seen.filter(({ isAlive }) => isAlive).map(({ worker }) => worker);
  const sum = (count: (worker: WorkerRecord) => number | undefined) => live.reduce((total, worker) => total + (count(worker) ?? 0), 0);
  const { version: _, ...machine } = machineOf(newest.worker);
  const counted = live.length > 0 ? live : seen.map(({ worker }) => worker);
  const versions = counted.flatMap(({ report }) => report?.machine?.version ?? []);
  return {
    ...machine,
    versions: [...new Set(versions)].toSorted(),
    state: toState(seen),
    workers: live.length,
    held: sum(({ report }) => report?.held),
    slots: {
      init: sum(({ report }) => report?.stages.init.slots),
      run: sum(({ report }) => report?.stages.run.slots),
      evaluate: sum(({ report }) => report?.stages.evaluate.slots),
    },
    heartbeat_age_ms: Math.min(...seen.map(({ worker }) => toAgeMs(worker, nowMs))),
    started_at: toTime(Math.min(...seen.map(({ worker }) => worker.startedAtMs))),
  };
}

function machineOf({ host, report }: WorkerRecord): MachineReport {
  return report?.machine ?? { id: `host:${host}`, name: host, labels: {}, cpus: 0, memory_bytes: 0 };
}

/** A worker that leaves says so in its last report. One that is gone without a word was lost, and takes its machine with it if none lives. */
function toState(seen: readonly SeenWorker[]): MachineView['state'] {
  const live = seen.filter(({ isAlive }) => isAlive);
  if (live.some(({ worker }) => worker.report?.draining !== true)) return 'live';
  if (live.length > 0) return 'draining';
  return seen.some(({ worker }) => worker.report?.draining !== true) ? 'lost' : 'left';
}

/** By the end of its lease, which the store wrote, and not by a clock of its machine. */
function toAgeMs({ leaseUntilMs, startedAtMs, hasEnded, report }: WorkerRecord, nowMs: number): number {
  const renewedAtMs = hasEnded ? leaseUntilMs : report?.lease_ms === undefined ? startedAtMs : leaseUntilMs - report.lease_ms;
  return Math.max(0, Math.round(nowMs - renewedAtMs));
}
