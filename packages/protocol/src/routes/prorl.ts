// The wire format of ProRL Agent, field by field, so that its clients work unchanged; Millrace only adds fields. Requests are read as
// leniently as the original reads them: unknown fields are ignored.

import { z } from 'zod';
import { errorBody } from '../error.ts';
import { rolloutId } from '../ids.ts';
import { failure } from '../rollout.ts';

export const processRequest = z.object({
  instance: z.record(z.string(), z.unknown()).describe('`data_source` names the scenario; the rest is the task.'),
  sampling_params: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('temperature, top_p, seed, max_output_tokens and max_iterations are read; other fields are ignored.'),
  job_id: z.string().nullish().describe('The id for /cancel.'),
});
export type ProcessRequest = z.infer<typeof processRequest>;

export const prorlCancelRequest = z.object({ job_id: z.string() });
export const llmServerRequest = z.object({ address: z.string().min(1) });

/** The reply of every route without a result. */
export const prorlReply = z.object({ status: z.string() });

export const prorlStatus = z.object({
  status: z.literal('running'),
  pending_jobs: z.int().describe('/process calls that have not ended.'),
  init_queue: z.int(),
  run_queue: z.int(),
  eval_queue: z.int(),
  active_init: z.int(),
  active_run: z.int(),
  active_eval: z.int(),
  total: z.int(),
});
export type ProrlStatus = z.infer<typeof prorlStatus>;

const prorlToolCall = z.object({
  id: z.string(),
  type: z.literal('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});

export const prorlMessage = z.object({
  role: z.string(),
  content: z.string(),
  reasoning: z.string().optional(),
  tool_calls: z.array(prorlToolCall).optional(),
  tool_call_id: z.string().optional(),
  name: z.string().optional(),
  token_ids: z.array(z.int()).optional().describe('The sampled tokens; on assistant messages only.'),
  input_ids: z.array(z.int()).optional().describe('The whole prompt that the tokens were sampled from.'),
  logprobs: z.array(z.number()).optional(),
});
export type ProrlMessage = z.infer<typeof prorlMessage>;

export const criticalErrors = ['init', 'run', 'eval', 'timeout'] as const;
export type CriticalError = (typeof criticalErrors)[number];

export const processReply = z.object({
  git_patch: z.string(),
  success: z.boolean(),
  error: z.string().nullable(),
  finish: z.boolean(),
  messages: z.array(prorlMessage),
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
  filter: z.boolean().describe('Whether to exclude it from training because no verifier measured a reward.'),
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
