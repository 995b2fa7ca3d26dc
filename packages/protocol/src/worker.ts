// What a worker reports with every renewal of its lease, and the state of the service as the live view reads it.

import { z } from 'zod';
import { backendView } from './backend.ts';
import { workerId } from './ids.ts';
import { rolloutStates } from './rollout.ts';

export const stageReport = z.object({ active: z.int(), waiting: z.int(), slots: z.int() });
export type StageReport = z.infer<typeof stageReport>;

export const workerReport = z.object({
  stages: z.object({ init: stageReport, ready: stageReport, run: stageReport, evaluate: stageReport }),
  held: z.int().describe('Rollouts that it holds, in any stage.'),
  backends: z.record(z.string(), z.int()).describe('Its rollouts on each backend.'),
  calls: z.record(z.string(), z.int()).optional().describe('Its running requests on each backend.'),
  turns: z.int().describe('Turns since the worker started.'),
  sampled_tokens: z.int(),
  loop_lag_ms: z.object({ p50: z.number(), p99: z.number(), max: z.number() }).describe('Over the last ten seconds or so.'),
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

export const serviceStatus = z.object({
  rollouts: z.record(z.enum(rolloutStates), z.int()),
  workers: z.array(workerView),
  backends: z.array(backendView),
  last_event_id: z.int(),
  loop_lag_ms: z.object({ p50: z.number(), p99: z.number(), max: z.number() }),
  rss_bytes: z.int(),
});
export type ServiceStatus = z.infer<typeof serviceStatus>;
