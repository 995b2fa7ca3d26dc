// What a worker says of itself with every renewal of its lease, and the service's state as the live view reads it.

import { z } from 'zod';
import { backendView } from './backend.ts';
import { workerId } from './ids.ts';
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

export const serviceStatus = z.object({
  rollouts: z.record(z.enum(rolloutStates), z.int()),
  workers: z.array(workerView),
  backends: z.array(backendView),
  tokens_per_s: z.number().describe('Tokens sampled by all live workers, over the last ten seconds.'),
  last_event_id: z.int(),
  loop_lag_ms: z.object({ p50: z.number(), p99: z.number(), max: z.number() }),
  rss_bytes: z.int(),
});
export type ServiceStatus = z.infer<typeof serviceStatus>;
