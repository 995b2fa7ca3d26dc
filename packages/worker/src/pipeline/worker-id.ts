// The id of a worker: unique among all machines and all times, and readable, because it is in every event of the worker.

import { hostname } from 'node:os';
import { type WorkerId, workerId } from '@millrace/protocol';

/** `launch` is of this process alone. `life`: how many ids this process has had; a worker that lost its lease gets a new one. */
export function makeWorkerId(launch: string, life: number): WorkerId {
  const host = hostname()
    .replace(/[^A-Za-z0-9.-]/g, '-')
    .slice(0, 80);
  return workerId.parse(`w-${host}:${process.pid}:${launch}:${life}`);
}
