// What a worker reports with every renewal of its lease, and the state of the service as the live view reads it.

import { z } from 'zod';
import { backendView, callProgress } from './backend.ts';
import { batchId, seriesId, workerId } from './ids.ts';
import { machineReport, machineView } from './machine.ts';
import { rolloutStates } from './plain/rollout-state.ts';
import { policyView } from './policy.ts';

export const stageReport = z.object({ active: z.int(), waiting: z.int(), slots: z.int() });
export type StageReport = z.infer<typeof stageReport>;

export const workerReport = z.object({
  stages: z.object({ init: stageReport, ready: stageReport, run: stageReport, evaluate: stageReport }),
  held: z.int().describe('Rollouts that it holds, in any stage.'),
  backends: z.record(z.string(), z.int()).describe('Its rollouts on each backend.'),
  calls: z.record(z.string(), z.int()).optional().describe('Its running requests on each backend.'),
  call_progress: z.record(z.string(), callProgress).optional().describe('How these requests get on, on each backend that has some.'),
  held_for_cache: z.record(z.string(), z.int()).optional().describe('Its rollouts that wait for room in the KV cache of each backend.'),
  turns: z.int().describe('Turns since the worker started.'),
  sampled_tokens: z.int().describe('Tokens since the worker started, including those of calls in progress.'),
  tokens_per_s: z.number().optional().describe('Over the last ten seconds.'),
  loop_lag_ms: z.object({ p50: z.number(), p99: z.number(), max: z.number() }).describe('Over the last ten seconds or so.'),
  rss_bytes: z.int(),
  machine: machineReport.optional().describe('The machine that it runs on.'),
  gateway_url: z.string().optional().describe('Where it takes the requests of the gateways that it holds; the server calls it.'),
  lease_ms: z.int().optional().describe('How long a renewal lasts.'),
  draining: z.boolean().optional().describe('It takes no more rollouts, and leaves when those that it holds have ended.'),
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

/** A class of work: what shares the workers fairly with other classes of the same priority. */
export const classView = z.object({
  kind: z.enum(['plain', 'batch', 'evaluation']),
  name: z.string().describe('The id of the batch or evaluation; of plain submissions, a name for their key, or nothing without keys.'),
  weight: z.number(),
  priority: z.int(),
  urgent: z.boolean().describe('Replacements and the last groups of a batch, which go first.'),
  queued: z.int(),
  active: z.int().describe('From init to run.'),
});
export type ClassView = z.infer<typeof classView>;

export const serviceStatus = z.object({
  rollouts: z.record(z.enum(rolloutStates), z.int()),
  classes: z.array(classView).optional().describe('Classes with queued or active rollouts, in the order in which they are served.'),
  workers: z.array(workerView).describe('Live workers first, then those that are gone.'),
  machines: z.array(machineView).optional().describe('The machines of these workers, live ones first.'),
  backends: z.array(backendView),
  policy: policyView,
  batches: z.array(openBatchView).describe('Open batches, oldest first.'),
  recent: recentEnds,
  hints: z.array(z.string()).describe('What is missing for rollouts to make progress, in sentences for people.'),
  tokens_per_s: z.number().describe('Tokens sampled by all live workers, over the last ten seconds.'),
  last_event_id: z.int(),
  store: z
    .object({
      file_bytes: z.int(),
      wal_bytes: z.int(),
      reusable_bytes: z.int().optional().describe('Inside the file: space of deleted rows, which new rows will use.'),
      free_bytes: z.int(),
      full: z.string().nullable().optional().describe('Why the store is full and what to do; null while it is not.'),
    })
    .optional()
    .describe("The store's file, its write-ahead log, and what is free on its disk."),
  loop_lag_ms: z.object({ p50: z.number(), p99: z.number(), max: z.number() }),
  rss_bytes: z.int(),
});
export type ServiceStatus = z.infer<typeof serviceStatus>;
