// The wire format of ProRL Agent, field by field, so that its clients work unchanged; Millrace only adds fields. Requests are read as
// leniently as the original reads them: unknown fields are ignored.

import { z } from 'zod';
import { errorBody } from '../error-body.ts';
import { rolloutId } from '../ids.ts';
import { failure } from '../rollout.ts';

export const processRequest = z.object({
  instance: z.record(z.string(), z.unknown()).describe('`data_source` names the scenario; the rest is the task.'),
  sampling_params: z
    .record(z.string(), z.unknown())
    .default({})
    .describe(
      'Read, as numbers or as text: temperature, top_p, top_k, min_p, repetition_penalty, presence_penalty, frequency_penalty, seed, max_output_tokens, max_model_len, max_iterations, token_level_generation and strict_loop_detector. Other fields are ignored.',
    ),
  job_id: z.string().nullish().describe('The id for /cancel.'),
});
export type ProcessRequest = z.infer<typeof processRequest>;

export const prorlCancelRequest = z.object({ job_id: z.string() });
export const llmServerRequest = z.object({ address: z.string().min(1) });

/** The reply of every route without a result. */
export const prorlReply = z.object({ status: z.string() });

export const prorlStatus = z.object({
  status: z.literal('running'),
  running: z.literal(true),
  pending_jobs: z.int().describe('/process calls that have not ended.'),
  init_queue: z.int(),
  run_queue: z.int(),
  eval_queue: z.int(),
  active_init: z.int(),
  active_run: z.int(),
  active_eval: z.int(),
  total: z.int(),
  jobs: z.int().describe('As `pending_jobs`.'),
  init: z.int(),
  run: z.int(),
  eval: z.int(),
});
export type ProrlStatus = z.infer<typeof prorlStatus>;

/** Without the `function` around it, and without an id. `arguments` is JSON. */
const prorlToolCall = z.object({ name: z.string(), arguments: z.string() });

export const prorlMessage = z.object({
  role: z.string(),
  content: z.string().describe('With the reasoning, in think tags.'),
  tool_calls: z.array(prorlToolCall).optional(),
  token_ids: z
    .array(z.int())
    .describe('The lists of all messages, joined, are exactly what the model saw and sampled. Those of assistant messages were sampled.'),
  input_ids: z.array(z.int()).nullable().describe('The whole prompt that the tokens were sampled from; on assistant messages only.'),
  logprobs: z.array(z.number()).nullable(),
});
export type ProrlMessage = z.infer<typeof prorlMessage>;

export const criticalErrors = ['init', 'run', 'eval', 'timeout'] as const;
export type CriticalError = (typeof criticalErrors)[number];

export const processReply = z.object({
  git_patch: z.string().describe('`git_patch` or `patch` of the score; empty if the scenario has none.'),
  success: z.boolean(),
  error: z.string().nullable(),
  finish: z.boolean(),
  messages: z
    .array(prorlMessage)
    .describe('They end with an assistant message. Empty if nothing was sampled, so that the client tries again.'),
  tools: z.array(
    z.object({
      type: z.literal('function'),
      function: z.object({ name: z.string(), description: z.string(), parameters: z.record(z.string(), z.unknown()) }),
    }),
  ),
  end_properly: z.boolean(),
  resolved: z.boolean(),
  critical_error: z.enum(criticalErrors).nullable(),
  instance_id: z.unknown(),
  trajectory_id: z.unknown(),
  filter: z
    .boolean()
    .describe(
      'Whether to exclude it from training: no verifier measured a reward, or a limit other than malformed calls stopped the agent.',
    ),
  timing: z.object({
    init_time: z.number(),
    run_time: z.number(),
    eval_time: z.number(),
    others_time: z.number(),
    counted_elapsed: z.number(),
    timeout_triggered: z.boolean(),
  }),
  reward: z.number().nullable(),
  rollout_id: rolloutId,
  failure: failure.nullable(),
});
export type ProcessReply = z.infer<typeof processReply>;

/** ProRL Agent's clients read `detail`. */
export const prorlErrorBody = errorBody.extend({ detail: z.string() });
