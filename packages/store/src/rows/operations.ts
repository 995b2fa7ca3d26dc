// The operations by name: those that change something, and those that only read.

import type { Transaction } from '../transaction.ts';
import {
  beginTasks,
  cancelEvaluation,
  createEvaluation,
  evaluations,
  expiredEvaluations,
  retainEvaluationSlice,
  retryUnscored,
} from './evaluations.ts';
import { backends, clearBackends, drainBackend, joinBackend, leaveBackend } from './operations/backends.ts';
import { groupTask, openGroups, queuedTasks, surplusGroups } from './operations/batch/group-queries.ts';
import { appendTasks, batch, batches, createBatch, endBatch, openBatches, resumeBatch } from './operations/batches.ts';
import { blobGarbage, forgetGarbage, knownBlobs, replaceText, storeId, trajectoriesWithText } from './operations/blobs.ts';
import { claim, endIfLost, finish, hasEndedSo, move, release, retry, unanswered } from './operations/claims.ts';
import { classes, load } from './operations/classes.ts';
import { ack, acked, deliveredGroups, dueWebhooks, holdWebhook, noteWebhook } from './operations/delivery.ts';
import { evaluation, evaluationTasks, unbegunEvaluations } from './operations/evaluation/evaluation-queries.ts';
import { appendEvents, events, lastEventAtMs, lastEventId, oldestEventId } from './operations/events.ts';
import { beginGroup, cursor, renewGroup, replaceSiblings, settleGroup, takeGroup } from './operations/groups.ts';
import { breakBackend, recoverBackend, takeProbe } from './operations/health/backend-health.ts';
import { noteProbe } from './operations/health/backend-identity.ts';
import { backendLoads, noteTraffic, oldestOn, place } from './operations/placements.ts';
import { pausePolicy, policy, reportGate, resumePolicy, touch } from './operations/policy.ts';
import { countStates, get, list, reusableBytes, trajectory } from './operations/queries.ts';
import { expiredBatches, expiredGroups, retainBatchSlice, retainGroupSlice, retainSlice } from './operations/retention.ts';
import { leadUntilMs, takeDuty } from './operations/servers/duties.ts';
import {
  adoptProrlJob,
  closeProrlJob,
  noteProrl,
  openProrlJob,
  prorlJobs,
  prorlState,
  renewProrlJobs,
} from './operations/servers/prorl-jobs.ts';
import { cancel, submit } from './operations/submit.ts';
import { putTrainerStep, retainTrainerSlice, trainerRuns, trainerSamples, trainerSteps } from './operations/trainer.ts';
import { appendTurns, loggedTurns, savedTurns } from './operations/turn-log.ts';
import {
  clockJumpedAtMs,
  dropWorker,
  expire,
  hasLateWorkers,
  noteClockJump,
  registerWorker,
  renew,
  restartLeases,
  workers,
} from './operations/workers.ts';

export const writes = {
  submit,
  cancel,
  registerWorker,
  renew,
  claim,
  move,
  endIfLost,
  finish,
  retry,
  release,
  dropWorker,
  expire,
  restartLeases,
  noteClockJump,
  joinBackend,
  drainBackend,
  leaveBackend,
  clearBackends,
  pausePolicy,
  resumePolicy,
  reportGate,
  touch,
  place,
  breakBackend,
  noteProbe,
  recoverBackend,
  takeProbe,
  noteTraffic,
  appendEvents,
  retainSlice,
  retainBatchSlice,
  retainGroupSlice,
  forgetGarbage,
  replaceText,
  createBatch,
  appendTasks,
  endBatch,
  resumeBatch,
  beginGroup,
  takeGroup,
  renewGroup,
  replaceSiblings,
  settleGroup,
  ack,
  holdWebhook,
  noteWebhook,
  createEvaluation,
  beginTasks,
  cancelEvaluation,
  retryUnscored,
  retainEvaluationSlice,
  takeDuty,
  noteProrl,
  openProrlJob,
  adoptProrlJob,
  renewProrlJobs,
  closeProrlJob,
  putTrainerStep,
  retainTrainerSlice,
  appendTurns,
};

export const reads = {
  get,
  list,
  trajectory,
  counts: countStates,
  reusableBytes,
  storeId,
  blobGarbage,
  knownBlobs,
  trajectoriesWithText,
  classes,
  workers,
  hasLateWorkers,
  clockJumpedAtMs,
  backends,
  backendLoads,
  oldestOn,
  policy,
  events,
  lastEventAtMs,
  lastEventId,
  oldestEventId,
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
  expiredBatches,
  evaluation,
  evaluations,
  evaluationTasks,
  unbegunEvaluations,
  expiredEvaluations,
  expiredGroups,
  prorlState,
  prorlJobs,
  trainerSteps,
  trainerRuns,
  trainerSamples,
  loggedTurns,
  savedTurns,
  unanswered,
  hasEndedSo,
  leadUntilMs,
};

export type Operations = Readonly<Record<string, (transaction: Transaction, request: never) => Promise<unknown>>>;
export type Writes = typeof writes;
export type Reads = typeof reads;
