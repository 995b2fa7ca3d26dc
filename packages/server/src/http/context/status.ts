// The service's state as one picture, read from the store at most once a second however many ask for it.

import type { ServiceStatus } from '@millrace/protocol';
import type { Clock } from '../../base/clock.ts';
import type { LoopLag } from '../../base/loop-lag.ts';
import { toTime } from '../../store/rollout-view.ts';
import type { Store, WorkerRecord } from '../../store/store.ts';
import { toBackendView } from './backend-view.ts';

const freshMs = 1000;
/** Workers that ended longer ago are no longer worth showing. */
const shownMs = 600_000;

export interface StatusReader {
  read(): Promise<ServiceStatus>;
}

export function openStatus(deps: { readonly store: Store; readonly clock: Clock; readonly loopLag: Pick<LoopLag, 'read'> }): StatusReader {
  let latest: { readonly at: number; readonly status: Promise<ServiceStatus> } | undefined;
  return {
    read() {
      const at = deps.clock.monotonic();
      if (latest !== undefined && at - latest.at < freshMs) return latest.status;
      const status = readStatus(deps);
      const reading = { at, status };
      latest = reading;
      // A failure is answered to those who wait for it, and kept for nobody.
      status.catch(() => {
        if (latest === reading) latest = undefined;
      });
      return status;
    },
  };
}

export function isAlive(worker: WorkerRecord, clock: Clock): boolean {
  return worker.leaseUntilMs > clock.now();
}

async function readStatus({ store, clock, loopLag }: Parameters<typeof openStatus>[0]): Promise<ServiceStatus> {
  const [rollouts, workers, backends, loads, lastEventId] = await Promise.all([
    store.counts(),
    store.workers(),
    store.backends(),
    store.backendLoads(),
    store.lastEventId(),
  ]);
  const shown = workers.filter((worker) => worker.leaseUntilMs > clock.now() - shownMs);
  const alive = workers.filter((worker) => isAlive(worker, clock));
  return {
    rollouts,
    workers: shown.map((worker) => ({
      id: worker.id,
      host: worker.host,
      pid: worker.pid,
      started_at: toTime(worker.startedAtMs),
      alive: isAlive(worker, clock),
      report: worker.report ?? null,
    })),
    backends: backends.map((backend) => toBackendView(backend, { loads, workers: alive })),
    tokens_per_s: alive.reduce((total, { report }) => total + (report?.tokens_per_s ?? 0), 0),
    last_event_id: lastEventId,
    loop_lag_ms: loopLag.read(),
    rss_bytes: process.memoryUsage.rss(),
  };
}
