// The operations by name, as they travel to the two threads: what changes goes to the writer, what only reads to the reader.

import { backends, clearBackends, drainBackend, joinBackend, leaveBackend } from './sqlite-backends.ts';
import { claim, finish, move, release, retry } from './sqlite-claims.ts';
import { appendEvents, events, lastEventId } from './sqlite-events.ts';
import { backendLoads, breakBackend, mendBackend, noteTraffic, place, takeProbe } from './sqlite-placements.ts';
import { counts, get, list, trajectory } from './sqlite-queries.ts';
import { retainSlice } from './sqlite-retention.ts';
import { cancel, submit } from './sqlite-submit.ts';
import { dropWorker, expire, registerWorker, renew, workers } from './sqlite-workers.ts';

export const writes = {
  submit,
  cancel,
  registerWorker,
  renew,
  claim,
  move,
  finish,
  retry,
  release,
  dropWorker,
  expire,
  joinBackend,
  drainBackend,
  leaveBackend,
  clearBackends,
  place,
  breakBackend,
  mendBackend,
  takeProbe,
  noteTraffic,
  appendEvents,
  retainSlice,
};

export const reads = { get, list, trajectory, counts, workers, backends, backendLoads, events, lastEventId };

export type Writes = typeof writes;
export type Reads = typeof reads;
