// What a trainer reports after an optimizer step: its numbers, and for a few of the rollouts that it trained on, what it computed for their
// tokens. Advantages and recomputed logprobs belong to the sampled tokens of one branch, in their order.

import { z } from 'zod';
import { rolloutId } from './ids.ts';

const value = z.number();
/** A million sampled tokens in one rollout are more than any context holds. */
const perToken = z.array(value).max(1_000_000);

export const trainerRun = z.string().min(1).max(128);

export const trainerSample = z.strictObject({
  rollout_id: rolloutId,
  branch: z.int().min(0).default(0).describe('The branch of its history that these tokens are in; 0 is the first.'),
  advantage: value.optional().describe('Of the whole branch.'),
  advantages: perToken.optional().describe('One for each sampled token of the branch, where they differ.'),
  logprobs: perToken.optional().describe('What the trainer computes for each sampled token of the branch, before the step.'),
  kl: perToken.optional().describe('The divergence from the reference policy at each sampled token of the branch.'),
});
export type TrainerSample = z.infer<typeof trainerSample>;

export const mostTrainerSamples = 1024;
const mostMetrics = 100;

export const trainerStepRequest = z.strictObject({
  run: trainerRun.default('default').describe('The training run. Steps of different runs are kept apart.'),
  step: z.int().min(0).describe('The number of the optimizer step. Sending a step again replaces it.'),
  policy_version: z.int().min(0).optional().describe('The version of the weights after this step.'),
  loss: value.optional(),
  kl: value.optional(),
  entropy: value.optional(),
  clip_share: value.min(0).max(1).optional().describe('The share of tokens whose ratio was clipped.'),
  metrics: z
    .record(z.string().min(1).max(128), value)
    .refine((given) => Object.keys(given).length <= mostMetrics, `at most ${mostMetrics} metrics`)
    .default({})
    .describe('Any other numbers, such as the learning rate.'),
  samples: z
    .array(trainerSample)
    .max(mostTrainerSamples)
    .default([])
    .describe('Some of the rollouts of the step: a few dozen show whether recorded and recomputed logprobs agree.'),
});
export type TrainerStepInput = z.input<typeof trainerStepRequest>;
export type TrainerStepRequest = z.infer<typeof trainerStepRequest>;

/** How far the recomputed logprobs are from the recorded ones, on the tokens of one backend and version. */
export const logprobMismatch = z.object({
  backend: z.string(),
  policy_version: z.int().nullable(),
  tokens: z.int(),
  mean_abs: z.number().describe('The mean of |recomputed - recorded|, in nats.'),
  most_abs: z.number(),
  kl: z.number().describe('An estimate of KL(recorded ‖ recomputed): the mean of exp(d) - 1 - d, with d = recomputed - recorded.'),
});
export type LogprobMismatch = z.infer<typeof logprobMismatch>;

export const trainerStepView = z.object({
  run: z.string(),
  step: z.int(),
  at: z.iso.datetime(),
  policy_version: z.int().nullable(),
  loss: z.number().nullable(),
  kl: z.number().nullable(),
  entropy: z.number().nullable(),
  clip_share: z.number().nullable(),
  metrics: z.record(z.string(), z.number()),
  samples: z.int().describe('How many samples it came with.'),
  unknown_samples: z.int().describe('Those whose trajectory this service does not have; they are not kept.'),
  mismatch: z.array(logprobMismatch).describe('By backend and policy version, from the samples with recomputed logprobs.'),
  alarm: z.string().nullable().describe('Says so if the mismatch grew, or is much larger on one backend than on the others.'),
});
export type TrainerStepView = z.infer<typeof trainerStepView>;

export const trainerStepList = z.object({
  steps: z.array(trainerStepView),
  next: z.int().nullable().describe('Pass it as `after` to read the following page.'),
  runs: z.array(z.object({ run: z.string(), steps: z.int(), newest_at: z.iso.datetime() })).describe('All runs, the newest first.'),
});
export type TrainerStepList = z.infer<typeof trainerStepList>;

export const trainerSampleList = z.object({
  samples: z.array(
    trainerSample.extend({ branch: z.int(), run: z.string(), step: z.int(), at: z.iso.datetime(), policy_version: z.int().nullable() }),
  ),
});
export type TrainerSampleList = z.infer<typeof trainerSampleList>;
