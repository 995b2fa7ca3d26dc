// Configuration of a worker's pipeline.

import { z } from 'zod';

export const pipelineConfig = z.strictObject({
  initSlots: z.int().min(1).default(8).describe('How many rollouts one worker prepares at the same time.'),
  readySlots: z.int().min(1).default(16).describe('How many rollouts one worker prepares or keeps ready: the size of the ready buffer.'),
  runSlots: z.int().min(1).default(256).describe('How many rollouts one worker runs at the same time.'),
  evaluateSlots: z.int().min(1).default(8).describe('How many rollouts one worker evaluates at the same time.'),
  evaluateWaiting: z
    .int()
    .min(1)
    .optional()
    .describe(
      'A worker claims no rollouts while this many of its finished runs wait to be evaluated or saved. By default twice `evaluateSlots`, or `runSlots` if that is more.',
    ),
  leaseMs: z
    .int()
    .min(200)
    .default(15_000)
    .describe('A worker that does not renew its lease for this long loses its rollouts to other workers.'),
  maxLosses: z.int().min(1).default(10).describe('A rollout that has lost its worker this many times fails as worker-lost.'),
  retryDelayMs: z
    .int()
    .min(0)
    .default(1000)
    .describe('The wait before a rollout is retried after its first failure or lost worker. It doubles each time, up to a minute.'),
  checkpointsGib: z
    .number()
    .min(0)
    .default(20)
    .describe(
      'Maximum size of the checkpoints in `run`, from which rollouts continue on this machine when their worker ends. 0: rollouts are not saved while they run, and begin again. See docs/continue.md.',
    ),
  checkpointsFolder: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A folder that all machines see: checkpoints are copied there when their worker leaves, and those that are kept for forks, so that rollouts continue on any machine. By default only on the same one; `millrace slurm` sets it.',
    ),
  rejudgeShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.01)
    .describe(
      'The share of rollouts whose results are judged a second time, to find verifiers that do not give the same reward again. The first reward counts; the second is in `score.rejudged` and in the metrics.',
    ),
  gatewayHost: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe(
      'The address on which a worker takes the requests of its gateways from the server. A worker on another machine needs one that the server can reach.',
    ),
  handBackMs: z
    .int()
    .min(0)
    .default(10_000)
    .describe('How long running rollouts may continue at a shutdown before they return to the queue.'),
});

/** The default lets one round of runs finish together without a pause in claiming. */
export function evaluateWaitingOf({ evaluateWaiting, evaluateSlots, runSlots }: PipelineConfig): number {
  return evaluateWaiting ?? Math.max(2 * evaluateSlots, runSlots);
}

export type PipelineConfig = z.infer<typeof pipelineConfig>;
