// The operations by name: the writer thread runs those that change something, the reader thread those that only read.

import { backends, clearBackends, drainBackend, joinBackend, leaveBackend } from './operations/backends.ts';
import { appendTasks, batch, batches, createBatch, endBatch, openBatches } from './operations/batches.ts';
import { claim, finish, move, release, retry } from './operations/claims.ts';
import { ack, acked, deliveredGroups, dueWebhooks, load, noteWebhook } from './operations/delivery.ts';
import { appendEvents, events, lastEventAtMs, lastEventId } from './operations/events.ts';
import {
  beginGroup,
  cursor,
  groupTask,
  openGroups,
  queuedTasks,
  renewGroup,
  replaceSiblings,
  settleGroup,
  surplusGroups,
  takeGroup,
} from './operations/groups.ts';
import { backendLoads, breakBackend, noteProbe, noteTraffic, place, recoverBackend, takeProbe } from './operations/placements.ts';
import { pausePolicy, policy, reportGate, resumePolicy } from './operations/policy.ts';
import { counts, get, list, trajectory } from './operations/queries.ts';
import { retainSlice } from './operations/retention.ts';
import { cancel, submit } from './operations/submit.ts';
import { dropWorker, expire, registerWorker, renew, restartLeases, workers } from './operations/workers.ts';

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
  restartLeases,
  joinBackend,
  drainBackend,
  leaveBackend,
  clearBackends,
  pausePolicy,
  resumePolicy,
  reportGate,
  place,
  breakBackend,
  noteProbe,
  recoverBackend,
  takeProbe,
  noteTraffic,
  appendEvents,
  retainSlice,
  createBatch,
  appendTasks,
  endBatch,
  beginGroup,
  takeGroup,
  renewGroup,
  replaceSiblings,
  settleGroup,
  ack,
  noteWebhook,
};

export const reads = {
  get,
  list,
  trajectory,
  counts,
  workers,
  backends,
  backendLoads,
  policy,
  events,
  lastEventAtMs,
  lastEventId,
  batch,
  batches,
  openBatches,
  openGroups,
  groupTask,
  surplusGroups,
  queuedTasks,
  cursor,
  load,
  deliveredGroups,
  acked,
  dueWebhooks,
};

export type Writes = typeof writes;
export type Reads = typeof reads;
