// What a worker says of itself with every renewal of its lease, and the service's state as the live view reads it.

import { z } from 'zod';
import { backendView } from './backend.ts';
import { batchId, seriesId, workerId } from './ids.ts';
import { policyView } from './policy.ts';
import { rolloutStates } from './rollout.ts';

export const stageReport = z.object({ active: z.int(), waiting: z.int(), slots: z.int() });
export type StageReport = z.infer<typeof stageReport>;

export const workerReport = z.object({
  stages: z.object({ init: stageReport, ready: stageReport, run: stageReport, evaluate: stageReport }),
  held: z.int().describe('Rollouts that it holds, in whichever stage.'),
  backends: z.record(z.string(), z.int()).describe('Rollouts in flight on each backend.'),
  calls: z.record(z.string(), z.int()).optional().describe('Its requests that each backend is answering.'),
  turns: z.int().describe('Since the worker started.'),
  sampled_tokens: z.int().describe('Since the worker started, also those of calls in flight.'),
  tokens_per_s: z.number().optional().describe('Over the last ten seconds.'),
  loop_lag_ms: z.object({ p50: z.number(), p99: z.number(), max: z.number() }).describe('Over some ten seconds.'),
  rss_bytes: z.int(),
});
export type WorkerReport = z.infer<typeof workerReport>;

export const workerView = z.object({
  id: workerId,
  host: z.string(),
  pid: z.int(),
  started_at: z.iso.datetime(),
  alive: z.boolean(),
  report: workerReport.nullable(),
});

/** An open batch in the service's status. */
export const openBatchView = z.object({
  id: batchId,
  series: seriesId.nullable(),
  scenario: z.string(),
  target: z.int().describe('Informative groups to deliver.'),
  delivered: z.int(),
  open_groups: z.int(),
  mean_reward: z.number().nullable().describe('Over the rewards of its judged groups, delivered or uniform.'),
  created_at: z.iso.datetime(),
});
export type OpenBatchView = z.infer<typeof openBatchView>;

/** Rollouts that ended recently, as this server has seen them since it started. */
export const recentEnds = z.object({
  seconds: z.int().describe('The length of the window.'),
  ended: z.int(),
  failed: z.int(),
  rewarded: z.int().describe('Those with a reward.'),
  mean_reward: z.number().nullable(),
});
export type RecentEndsView = z.infer<typeof recentEnds>;

export const serviceStatus = z.object({
  rollouts: z.record(z.enum(rolloutStates), z.int()),
  workers: z.array(workerView).describe('Live workers first, then those that are gone.'),
  backends: z.array(backendView),
  policy: policyView,
  batches: z.array(openBatchView).describe('Open batches, oldest first.'),
  recent: recentEnds,
  hints: z.array(z.string()).describe('What is missing for rollouts to make progress, in sentences for people.'),
  tokens_per_s: z.number().describe('Tokens sampled by all live workers, over the last ten seconds.'),
  last_event_id: z.int(),
  loop_lag_ms: z.object({ p50: z.number(), p99: z.number(), max: z.number() }),
  rss_bytes: z.int(),
});
export type ServiceStatus = z.infer<typeof serviceStatus>;
