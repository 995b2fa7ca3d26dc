// Evaluations on the wire: a fixed set of tasks, each sampled n times, and nothing filtered. The view has the numbers so far while it is
// open, and the final ones once it is done.

import { z } from 'zod';
import { evaluationId, rolloutId } from './ids.ts';
import { blames, errorCodes } from './plain/error.ts';
import { rolloutStates } from './plain/rollout-state.ts';
import { agent, limits, policySpan, priority, requires, stopReasons, templateDate } from './rollout.ts';
import { sampling } from './sampling.ts';

const task = z.record(z.string(), z.unknown());

/** The most tasks of one evaluation. */
export const mostEvaluationTasks = 20_000;

export const evaluationRequest = z.strictObject({
  id: evaluationId.optional().describe("The caller's id makes the request idempotent. Default: a new id."),
  scenario: z.string().min(1).max(128),
  tasks: z.array(task).min(1).max(mostEvaluationTasks),
  n: z.int().min(1).max(1024).default(1).describe('How many samples of each task are taken.'),
  agent: agent.optional(),
  date: templateDate.optional(),
  sampling: sampling.prefault({}),
  limits: limits.prefault({}),
  correct_at: z
    .number()
    .optional()
    .describe('A sample is correct if its reward is at least this. Default: the highest reward of its task, which is 1 in most scenarios.'),
  priority: priority.optional(),
  weight: z
    .number()
    .min(0.01)
    .max(100)
    .optional()
    .describe('Its share of the workers, relative to batches, other evaluations and plain submissions. Default: 1.'),
  requires: requires.optional(),
  metadata: z.record(z.string(), z.unknown()).optional().describe('Returned unchanged.'),
});
export type EvaluationRequest = z.infer<typeof evaluationRequest>;
/** An evaluation as a caller writes it: fields with a default are optional. */
export type EvaluationInput = z.input<typeof evaluationRequest>;

/** `done`: every sample has ended, with or without a reward. */
export const evaluationStates = ['open', 'done', 'cancelled'] as const;
export type EvaluationState = (typeof evaluationStates)[number];

/** A number with its error. All are null while there is nothing to compute them from. */
const estimateFields = {
  value: z.number().nullable().describe('Over the samples with a reward.'),
  standard_error: z.number().nullable().describe('Clustered by task; null with fewer than two tasks.'),
  lower: z
    .number()
    .nullable()
    .describe('The same number if every sample that ended without a reward had the reward 0 and was not correct.'),
  tasks: z.int().describe('How many tasks have enough samples with a reward to count.'),
};
export const estimate = z.object(estimateFields);
export type Estimate = z.infer<typeof estimate>;
export const passEstimate = z.object({ k: z.int().describe('The samples drawn of each task.'), ...estimateFields });
export type PassEstimate = z.infer<typeof passEstimate>;

export const evaluationFailure = z.object({
  blame: z.enum(blames),
  code: z.enum(errorCodes),
  samples: z.int().describe('How many samples ended with it.'),
  scored: z.int().describe('How many of them have a reward: the agent caused the failure, and got the lowest reward of its task.'),
});
export type EvaluationFailure = z.infer<typeof evaluationFailure>;

export const evaluationView = z.object({
  id: evaluationId,
  state: z.enum(evaluationStates),
  scenario: z.string(),
  tasks: z.int(),
  n: z.int(),
  samples: z.object({
    total: z.int(),
    begun: z.int().describe('Those that are queued, run or have ended.'),
    ended: z.int(),
    scored: z.int().describe('Those that ended with a reward.'),
    unscored: z.int().describe('Those that ended without a reward: they failed, or were cancelled.'),
    correct: z.int(),
  }),
  mean: estimate.describe('The mean reward.'),
  pass_at: z.array(passEstimate).describe('pass@k for the powers of two up to `n`: the chance that at least one of k samples is correct.'),
  pass_all: z.array(passEstimate).describe('pass^k, for the same k: the chance that all of k samples are correct.'),
  failures: z.array(evaluationFailure).describe('By blame and code, the most frequent first.'),
  stop_reasons: z.record(z.string(), z.int()).describe('Why agents stopped.'),
  turns: z.int().describe('Of all samples that ended.'),
  sampled_tokens: z.int().describe('Of all samples that ended.'),
  policy_versions: policySpan.nullable().describe('The weights that sampled it. More than one version means that they changed meanwhile.'),
  sampling,
  limits,
  correct_at: z.number().nullable().describe('As requested; null for the highest reward of each task.'),
  created_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
  metadata: z.record(z.string(), z.unknown()).nullable(),
  waiting: z.string().optional().describe('Why no live machine can take its samples; absent if one can, or if it has ended.'),
});
export type EvaluationView = z.infer<typeof evaluationView>;

export const evaluationList = z.object({ evaluations: z.array(evaluationView), next: z.string().nullable() });

export const evaluationSample = z.object({
  rollout: rolloutId,
  state: z.enum(rolloutStates),
  reward: z.number().nullable(),
  stop_reason: z.enum(stopReasons).nullable(),
  failure: z.object({ blame: z.enum(blames), code: z.enum(errorCodes), message: z.string() }).nullable(),
});

/** One task with its samples so far; a task that has not begun has none. */
export const evaluationTask = z.object({
  index: z.int().describe('Its position in the request.'),
  task,
  correct_at: z.number(),
  scored: z.int(),
  correct: z.int(),
  mean: z.number().nullable().describe('Over the samples with a reward.'),
  samples: z.array(evaluationSample),
});
export type EvaluationTask = z.infer<typeof evaluationTask>;

export const evaluationTaskPage = z.object({
  tasks: z.array(evaluationTask),
  next: z.int().nullable().describe('The `from` of the next page.'),
});
