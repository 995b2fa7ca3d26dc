// A rollout on the wire: the submission and its view.

import { z } from 'zod';
import { backendId, groupId, rolloutId, workerId } from './ids.ts';
import { machineLabels } from './machine.ts';
import { blames, errorCodes } from './plain/error.ts';
import { rolloutStates, stages } from './plain/rollout-state.ts';
import { sampling } from './sampling.ts';

/** Why the agent stopped. A rollout with a stop reason is evaluated. */
export const stopReasons = [
  'completed',
  'tool_stopped',
  'max_turns',
  'max_tokens',
  'context_overflow',
  'parse_error',
  'rollout_timeout',
  'loop',
] as const;
export type StopReason = (typeof stopReasons)[number];

const seconds = (fallback: number) => z.number().gt(0).max(86_400).default(fallback);

export const limits = z
  .strictObject({
    max_turns: z.int().min(1).max(10_000).default(50),
    max_context_tokens: z.int().min(16).max(10_000_000).default(32_768).describe('Prompt, sampled and tool tokens together.'),
    init_timeout_s: seconds(300),
    run_timeout_s: seconds(1800),
    evaluate_timeout_s: seconds(600),
    tool_timeout_s: seconds(60),
    max_retries: z.int().min(0).max(100).default(2).describe('How many times a retryable failure is retried.'),
    max_repeated_calls: z
      .int()
      .min(2)
      .max(10_000)
      .optional()
      .describe('Stop the agent as `loop` when this many turns in a row make the same calls with the same arguments. Default: never.'),
    max_staleness: z
      .int()
      .min(0)
      .optional()
      .describe(
        'The maximum age, in policy versions, of the weights that a rollout started with. An older rollout starts again with the new weights.',
      ),
  })
  .describe('Timeouts count only the time spent inside a stage, not the time spent waiting for a slot, a backend or new weights.');
export type Limits = z.infer<typeof limits>;

export const priority = z
  .int()
  .min(-100)
  .max(100)
  .describe('Work with a higher priority is started first. Work of equal priority shares the workers fairly. Default: 0.');

export const requires = machineLabels.describe(
  'The labels that a machine must have to run it, such as `{"gpu": "a100"}`: `machine.labels`, or `--label` of `millrace worker`. Default: none.',
);

export const templateDate = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })], 'Invalid date: expected a day (2026-01-31) or a time (2026-01-31T09:00:00Z)')
  .describe(
    'The date and time that chat templates write (`strftime_now`), in UTC. Default: when the first rollout of its group was created; siblings and retries have the same.',
  );

const agentName = z
  .string()
  .regex(/^[a-z0-9-]+$/)
  .max(64);

export const samplingNames = z
  .array(z.enum(Object.keys(sampling.shape) as [string, ...string[]]))
  .default([])
  .describe('The sampling parameters that requests may set.');

export const rewardRules = ['all', 'last', 'weighted'] as const;
export type RewardRule = (typeof rewardRules)[number];
export const rewardRule = z
  .enum(rewardRules)
  .default('all')
  .describe(
    'Which branches have the reward: every one, the one that completed a turn last, or every one with a weight, its share of the sampled tokens.',
  );

const agentOptions = z.strictObject({ name: agentName, allow: samplingNames, reward_rule: rewardRule });

export const agent = z
  .union([agentName, agentOptions])
  .describe(
    'The harness that acts in the sandbox, such as `codex`, or an object with its name and options: its model is the policy, and what it does is judged as ever. Default: the turn loop of Millrace, with the tools of the scenario.',
  );

export function toAgentOptions(given: z.input<typeof agent>): z.infer<typeof agentOptions> {
  return agentOptions.parse(typeof given === 'string' ? { name: given } : given);
}

export const keepCheckpoints = z
  .union([z.enum(['none', 'last']), z.strictObject({ every: z.int().min(1).max(10_000) })])
  .describe(
    'After which turns the state of the rollout is kept, so that it can be forked there: `none`, the `last` one that was saved, or each that `every` divides. Default: none.',
  );

/** Where a fork began: it shares everything up to this turn. */
export const forkOrigin = z.object({ rollout: rolloutId, turn: z.int().min(1) });
export type ForkOrigin = z.infer<typeof forkOrigin>;

export const submission = z.strictObject({
  id: rolloutId.optional().describe("The caller's id makes the submission idempotent. Default: a new id."),
  scenario: z.string().min(1).max(128),
  task: z.record(z.string(), z.unknown()).describe('The data of the task; checked by the schema of the scenario.'),
  agent: agent.optional(),
  group: groupId.optional(),
  date: templateDate.optional(),
  sampling: sampling.prefault({}),
  limits: limits.prefault({}),
  priority: priority.optional(),
  requires: requires.optional(),
  keep_checkpoints: keepCheckpoints.optional(),
  metadata: z.record(z.string(), z.unknown()).optional().describe('Returned unchanged.'),
});
/** `fork` is not for callers: forks are made by their own route. */
export type Submission = z.infer<typeof submission> & { readonly fork?: ForkOrigin };
/** A submission as a caller writes it: fields with a default are optional. */
export type SubmissionInput = z.input<typeof submission>;

export const submitRequest = z.strictObject({ rollouts: z.array(submission).min(1).max(10_000) });
export const submitReply = z.object({
  rollouts: z.array(z.object({ id: rolloutId, state: z.enum(rolloutStates), created: z.boolean() })),
});
export type SubmitReply = z.infer<typeof submitReply>;

export const forkRequest = z.strictObject({
  turn: z.int().min(1).optional().describe('After which turn they begin. Default: the last one that was kept.'),
  n: z.int().min(1).max(128).default(1),
  id: rolloutId.optional().describe('Makes the request idempotent: the forks are `ID.1`, `ID.2`, …. Default: a new id.'),
  sampling: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('Sampling parameters that differ from those of the rollout, such as `{"temperature": 1.2}`.'),
});
export type ForkRequest = z.infer<typeof forkRequest>;
export type ForkInput = z.input<typeof forkRequest>;
export const forkReply = submitReply.extend({ turn: z.int().min(1).describe('After which turn they begin.') });
export type ForkReply = z.infer<typeof forkReply>;

export const savedTurn = z.object({
  turn: z.int().min(1),
  attempt: z.int().min(0).describe('The attempt that sampled it; 0 if the rollout is a fork and shares it.'),
  kept: z.boolean().describe('Whether the rollout can be forked after it.'),
  checkpoint: z
    .string()
    .nullable()
    .describe('The name of its checkpoint in the run folder of the machine that ran it; null without a sandbox.'),
  rollout: rolloutId.describe('Whose checkpoint it is: of a shared turn, that of the rollout that was forked.'),
});
export type SavedTurn = z.infer<typeof savedTurn>;
export const savedTurnList = z.object({ turns: z.array(savedTurn) });

/** `cancelled`: the rollout has ended now. `asked`: the worker that runs it has been notified. `ended`: it had ended before. */
export const cancelOutcomes = ['cancelled', 'asked', 'ended'] as const;
export type CancelOutcome = (typeof cancelOutcomes)[number];
export const cancelReply = z.object({ id: rolloutId, cancel: z.enum(cancelOutcomes) });

export const failure = z.object({
  code: z.enum(errorCodes),
  message: z.string(),
  blame: z.enum(blames),
  retryable: z.boolean(),
  stage: z.enum(stages).nullable(),
  attempt: z.int(),
});
export type Failure = z.infer<typeof failure>;

export const timings = z.object({
  queued_ms: z.number(),
  init_ms: z.number(),
  ready_ms: z.number(),
  run_ms: z.number(),
  cache_wait_ms: z.number().default(0).describe('Waits for room in the KV cache of its backend. They are not part of `run_ms`.'),
  evaluate_wait_ms: z.number(),
  evaluate_ms: z.number(),
  model_ms: z.number(),
  tool_ms: z.number(),
});
export type Timings = z.infer<typeof timings>;

export const tokenCounts = z.object({ prompt: z.int(), sampled: z.int(), observation: z.int() });

export const policySpan = z.object({ first: z.int(), last: z.int() });

/** The result of an attempt, committed together with its trajectory and the new state. */
export const rolloutResult = z.object({
  reward: z.number().nullable().describe('A number only if a verifier measured it.'),
  score: z.record(z.string(), z.unknown()).describe('Details from the verifier.'),
  stop_reason: z.enum(stopReasons).nullable(),
  turns: z.int(),
  tokens: tokenCounts,
  malformed_calls: z.int(),
  policy_versions: policySpan.nullable(),
  backends: z.array(backendId),
  timings,
  trace_id: z.string().optional().describe('Of its OpenTelemetry trace; absent if it was not traced.'),
  continued: z
    .object({
      times: z.int().min(1).describe('How often an attempt went on from turns of an earlier one.'),
      turn: z.int().min(1).describe('The turn after which the last attempt went on.'),
      turns_again: z.int().min(0).describe('The turns that were saved after it, without all of their state: they were sampled again.'),
    })
    .optional()
    .describe('Absent if its last attempt began at the opening.'),
});
export type RolloutResult = z.infer<typeof rolloutResult>;

export const rolloutView = z.object({
  id: rolloutId,
  scenario: z.string(),
  group: groupId.nullable(),
  state: z.enum(rolloutStates),
  attempt: z.int().describe('How many times a worker has started it.'),
  retries: z.int().describe('How many times it was retried after a retryable failure.'),
  losses: z.int().describe('How many times its worker died. One death for each ten turns that are saved is not counted.'),
  worker: workerId.nullable(),
  reward: z.number().nullable(),
  result: rolloutResult.nullable(),
  failure: failure
    .nullable()
    .describe('Why it has no reward. With a reward: what the agent caused, which gave it the lowest reward of its task.'),
  failures: z.array(failure).describe('The failures of earlier attempts.'),
  created_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
  metadata: z.record(z.string(), z.unknown()).nullable(),
  fork: forkOrigin.optional().describe('The rollout that it is a fork of, and the turn after which it began.'),
  waiting: z.string().optional().describe('Why no live machine can take it; absent if one can, or if it is not queued.'),
});
export type RolloutView = z.infer<typeof rolloutView>;

export const rolloutList = z.object({ rollouts: z.array(rolloutView), next: z.string().nullable() });
export type RolloutList = z.infer<typeof rolloutList>;
