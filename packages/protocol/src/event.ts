// The event log: everything that happens, in order, with ids that a reader can resume from. Metrics, the live view and waiting callers all
// read this log.

import { z } from 'zod';
import { backendId, groupId, rolloutId, workerId } from './ids.ts';

/**
 * - rollout-queue: a worker can claim it; `data.reason` is submit, retry, loss or release
 * - rollout-move: it moved to the next stage; `data` has from, to and attempt
 * - rollout-cancel: a caller cancelled it while it was running
 * - rollout-place: it moved to another backend; `data` has from and to
 * - rollout-end: `data` has state, reward, stop_reason, code, blame and the timings, and `rejudged` if its results were judged twice
 * - turn-end: `data` has turn, sampled_tokens, context_tokens, model_ms, tool_ms and calls, and `repeats` if turns in a row made the same calls
 * - policy-pause: a pause was requested, and again when it is complete; `data` has state (pausing or paused) and mode
 * - trainer-step: a trainer posted a step; `data` has run, step and policy_version, and mean_abs and alarm where it recomputed logprobs
 * - policy-resume: sampling continues; `data` has policy_version and caches_flushed
 * - batch-open, batch-tasks, group-begin, group-end, batch-end: `data` has batch, and for an end its state and counts
 * - batch-resume: an operator ended its pause; `data` has batch
 * - evaluation-open, evaluation-end: `data` has evaluation, and for an end its state and the samples that ended; `retried` if it is open again
 * - task-skip: a line of a task file that its scenario refused; `data` has batch, file, line and message
 * - backend-traffic: totals of one worker's calls to it since the previous such event
 * - backend-break: it failed, and gets no rollouts until it recovers
 * - backend-recovered: it passed a health check
 * - backend-changed: another server answers at its address, or the same after a restart; `data` has generation, the facts that differ as
 *   from and to, and weights, which are unknown if nothing says which version it serves now
 */
export const eventKinds = [
  'rollout-queue',
  'rollout-move',
  'rollout-cancel',
  'rollout-place',
  'rollout-end',
  'turn-end',
  'backend-join',
  'backend-drain',
  'backend-leave',
  'policy-pause',
  'policy-resume',
  'trainer-step',
  'backend-break',
  'backend-recovered',
  'backend-changed',
  'backend-traffic',
  'worker-start',
  'worker-end',
  'batch-open',
  'batch-tasks',
  'group-begin',
  'group-end',
  'batch-end',
  'batch-resume',
  'evaluation-open',
  'evaluation-end',
  'task-skip',
] as const;
export type EventKind = (typeof eventKinds)[number];

export const event = z.object({
  id: z.int(),
  at: z.iso.datetime(),
  kind: z.enum(eventKinds),
  rollout_id: rolloutId.optional(),
  group: groupId.optional(),
  worker_id: workerId.optional(),
  backend_id: backendId.optional(),
  data: z.record(z.string(), z.unknown()),
});
export type Event = z.infer<typeof event>;
