// The operations by name, as they travel to the two threads: what changes goes to the writer, what only reads to the reader.

import { backends, clearBackends, drainBackend, joinBackend, leaveBackend } from './sqlite-backends.ts';
import { appendTasks, batch, batches, createBatch, endBatch, openBatches } from './sqlite-batches.ts';
import { claim, finish, move, release, retry } from './sqlite-claims.ts';
import { ack, acked, deliveredGroups, dueWebhooks, load, noteWebhook } from './sqlite-delivery.ts';
import { appendEvents, events, lastEventId } from './sqlite-events.ts';
import {
  beginGroup,
  cursor,
  groupTask,
  keptGroups,
  lineTasks,
  openGroups,
  renewGroup,
  replaceSiblings,
  settleGroup,
  takeGroup,
} from './sqlite-groups.ts';
import { backendLoads, breakBackend, mendBackend, noteTraffic, place, takeProbe } from './sqlite-placements.ts';
import { pausePolicy, policy, resumePolicy, tellGate } from './sqlite-policy.ts';
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
  pausePolicy,
  resumePolicy,
  tellGate,
  place,
  breakBackend,
  mendBackend,
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
  lastEventId,
  batch,
  batches,
  openBatches,
  openGroups,
  groupTask,
  keptGroups,
  lineTasks,
  cursor,
  load,
  deliveredGroups,
  acked,
  dueWebhooks,
};

export type Writes = typeof writes;
export type Reads = typeof reads;
