// What can be set about a worker's pipeline.

import { z } from 'zod';

export const pipelineConfig = z.strictObject({
  initSlots: z.int().min(1).default(8).describe('Rollouts that one worker prepares at once.'),
  readySlots: z.int().min(1).default(16).describe('Rollouts that one worker prepares or keeps prepared: the bound of the ready buffer.'),
  runSlots: z.int().min(1).default(256).describe('Rollouts that one worker runs at once.'),
  evaluateSlots: z.int().min(1).default(8).describe('Rollouts that one worker evaluates at once.'),
  leaseMs: z
    .int()
    .min(200)
    .default(15_000)
    .describe('A worker that has not been heard of for so long has lost its rollouts to the others.'),
  maxLosses: z.int().min(1).default(10).describe('A rollout whose worker died so often fails as worker-lost.'),
  retryDelayMs: z.int().min(0).default(1000).describe('Wait before the first retry of a rollout; doubled for each further one.'),
  handBackMs: z.int().min(0).default(10_000).describe('At a shutdown, how long what runs may go on before it is handed back.'),
});

export type PipelineConfig = z.infer<typeof pipelineConfig>;
