// The status of the service, read from the store at most once a second however often it is requested.

import type { Clock } from '@millrace/base/clock';
import type { LoopLag } from '@millrace/base/loop-lag';
import type { ClassView, OpenBatchView, ServiceStatus } from '@millrace/protocol';
import { type ClassLoad, type OpenBatch, type Store, type StoreSize, toTime, type WorkerRecord } from '@millrace/store';
import { toBackendView } from './backend-view.ts';
import { findHints } from './hints.ts';
import { toMachines } from './machines.ts';
import { toPolicyView } from './policy-view.ts';
import type { RecentEnds } from './recent-ends.ts';

const freshMs = 1000;
/** How long a worker that ended is still shown. */
const shownMs = 600_000;

export interface StatusReader {
  read(): Promise<ServiceStatus>;
}

interface StatusDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly loopLag: Pick<LoopLag, 'read'>;
  readonly recentEnds: RecentEnds;
}

export function openStatus(deps: StatusDeps): StatusReader {
  let latest: { readonly at: number; readonly status: Promise<ServiceStatus> } | undefined;
  return {
    read() {
      const at = deps.clock.monotonic();
      if (latest !== undefined && at - latest.at < freshMs) return latest.status;
      const status = readStatus(deps);
      const reading = { at, status };
      latest = reading;
      // A failure is returned to the callers that wait for it, and not cached.
      status.catch(() => {
        if (latest === reading) latest = undefined;
      });
      return status;
    },
  };
}

export function isAlive(worker: WorkerRecord, clock: Clock): boolean {
  return !worker.hasEnded && worker.leaseUntilMs > clock.now();
}

async function readStatus({ store, clock, loopLag, recentEnds }: StatusDeps): Promise<ServiceStatus> {
  const [rollouts, classes, workers, backendRecords, loads, policyRecord, batches, lastEventId, size] = await Promise.all([
    store.counts(),
    store.classes(),
    store.workers(),
    store.backends(),
    store.backendLoads(),
    store.policy(),
    store.openBatches(),
    store.lastEventId(),
    store.size(),
  ]);
  const alive = workers.filter((worker) => isAlive(worker, clock));
  const gone = workers.filter((worker) => !isAlive(worker, clock) && worker.leaseUntilMs > clock.now() - shownMs);
  const backends = backendRecords.map((backend) => toBackendView(backend, { loads, workers: alive }));
  const policy = toPolicyView(policyRecord);
  const shown = [...alive, ...gone];
  const machines = toMachines(
    shown.map((worker) => ({ worker, isAlive: isAlive(worker, clock) })),
    clock.now(),
  );
  return {
    rollouts,
    classes: classes.map(toClassView),
    workers: shown.map((worker) => toWorkerView(worker, clock)),
    machines,
    backends,
    policy,
    batches: batches.map(toOpenBatchView),
    recent: recentEnds.read(),
    hints: findHints({ liveWorkers: alive.length, backends, policy, batches, classes, machines, storeFull: size.full }),
    tokens_per_s: alive.reduce((total, { report }) => total + (report?.tokens_per_s ?? 0), 0),
    last_event_id: lastEventId,
    store: toStoreView(size),
    loop_lag_ms: loopLag.read(),
    rss_bytes: process.memoryUsage.rss(),
  };
}

function toStoreView({ fileBytes, walBytes, reusableBytes, freeBytes, full }: StoreSize): ServiceStatus['store'] {
  return { file_bytes: fileBytes, wal_bytes: walBytes, reusable_bytes: reusableBytes, free_bytes: freeBytes, full: full ?? null };
}

function toClassView({ kind, name, weight, priority, isUrgent, queued, active }: ClassLoad): ClassView {
  return { kind, name, weight, priority, urgent: isUrgent, queued, active };
}

function toWorkerView(worker: WorkerRecord, clock: Clock): ServiceStatus['workers'][number] {
  const { id, host, pid, startedAtMs, report } = worker;
  return { id, host, pid, started_at: toTime(startedAtMs), alive: isAlive(worker, clock), report: report ?? null };
}

function toOpenBatchView({ id, plan, delivered, open, meanReward, createdAtMs }: OpenBatch): OpenBatchView {
  const { scenario, target, series = null } = plan;
  return {
    id,
    series,
    scenario,
    target,
    delivered,
    open_groups: open,
    mean_reward: meanReward ?? null,
    created_at: toTime(createdAtMs),
  };
}
