// Backends on the wire: LLM servers that join, drain and leave while rollouts run.

import { z } from 'zod';
import { backendId } from './ids.ts';

/**
 * - vllm: /inference/v1/generate, or /v1/completions if the server has no such route
 * - vllm-completions: /v1/completions
 * - sglang: /generate
 * - llamacpp: /completion
 * - prorl: /generate with `prompt_ids`, as ProRL Agent's trainers serve it
 * - chat: /v1/chat/completions of a server that returns the ids of its prompt and its answer
 */
export const dialects = ['vllm', 'vllm-completions', 'sglang', 'llamacpp', 'prorl', 'chat'] as const;
export type Dialect = (typeof dialects)[number];

/** `processed`: logprobs of the distribution that was sampled from. `raw`: logprobs before temperature and penalties. */
export const logprobsModes = ['raw', 'processed', 'unknown'] as const;
export type LogprobsMode = (typeof logprobsModes)[number];

/** Whether a server encodes text as the service does. `unchecked`: it has no tokenizer route, or no tokenizer was there to compare. */
export const tokenizerAgreements = ['same', 'different', 'unchecked'] as const;
export type TokenizerAgreement = (typeof tokenizerAgreements)[number];

export const backendStates = ['up', 'draining'] as const;
export type BackendState = (typeof backendStates)[number];

/** A broken backend gets no rollouts until it passes a health check. */
const backendHealths = ['ok', 'broken'] as const;

export const joinRequest = z.strictObject({
  id: backendId.optional().describe('Default: derived from the address. Joining again with the same id updates the backend.'),
  url: z
    .url({ protocol: /^https?$/ })
    .describe('The base address. A trailing /v1 is removed. `{session}` in it stands for the id of the rollout.'),
  dialect: z
    .enum(dialects)
    .optional()
    .describe('How it is called. Default: what its server says that it is, among vllm, sglang and llamacpp; vllm if it does not say.'),
  model: z.string().min(1).optional().describe('Sent as `model` in every request.'),
  api_key: z.string().min(1).optional().describe('Sent as a bearer token; never returned.'),
  policy_version: z
    .int()
    .min(0)
    .optional()
    .describe('The version of the weights that it serves. Default: the current version of the policy.'),
  logprobs_mode: z
    .enum(logprobsModes)
    .default('unknown')
    .describe(
      'The kind of its logprobs, as it was started (`--logprobs-mode` of vLLM). What its server reports takes precedence: vLLM does so with VLLM_SERVER_DEV_MODE=1.',
    ),
});
export type JoinRequest = z.infer<typeof joinRequest>;
/** A join as a caller writes it: fields with a default are optional. */
export type JoinInput = z.input<typeof joinRequest>;

/** Fields that the server does not report are null. */
const backendProbe = z.object({
  engine: z.string().nullable(),
  version: z.string().nullable(),
  model: z.string().nullable().describe('The name of the model that it serves.'),
  context_length: z.int().nullable().describe('How many tokens the prompt and the reply may have together.'),
  tokenizer: z
    .enum(tokenizerAgreements)
    .default('unchecked')
    .describe("Whether it encodes a few texts as the service's tokenizer does. A backend with a different tokenizer is broken."),
  tokenizer_reason: z.string().nullable().default(null).describe('The text and the ids that differ, or why it was not checked.'),
  several: z
    .boolean()
    .default(false)
    .describe('Whether several servers answer at its address in turns, as behind a router. The other facts are then those that all share.'),
  at: z.iso.datetime(),
});

/** How the running calls on a backend get on. */
export const callProgress = z.object({
  oldest_call_ms: z.int().describe('How long the oldest call has run.'),
  last_token_ms: z.int().nullable().describe('Since a token arrived in one of the calls; null if none has a token yet.'),
  tokens_per_s: z.number().describe('Over the last ten seconds. Some engines send all tokens at the end of a call.'),
});
export type CallProgressReport = z.infer<typeof callProgress>;

export const backendView = z.object({
  id: backendId,
  url: z.string(),
  dialect: z.enum(dialects),
  model: z.string().nullable(),
  policy_version: z.int(),
  logprobs_mode: z
    .enum(logprobsModes)
    .describe("As its server reports it, else as given when it joined, or the fixed mode of the dialect's servers."),
  logprobs_reason: z.string().nullable().default(null).describe('How the mode of its logprobs is known, or what to do so that it is.'),
  probe: backendProbe.nullable().default(null).describe('What its server said when it was last asked everything; null if it was not.'),
  generation: z
    .int()
    .min(1)
    .default(1)
    .describe(
      'Counts the servers that have answered at its address: a restart is another server, and the event backend-changed says what differs.',
    ),
  route: z.string().nullable().default(null).describe('The route that its calls use.'),
  route_reason: z.string().nullable().default(null).describe('Why that is not the first choice of its dialect; null if it is.'),
  state: z.enum(backendStates),
  health: z.enum(backendHealths),
  broken_for: z
    .array(z.string())
    .default([])
    .describe('Machines that cannot reach it, by their host names. With `health` ok, other machines use it.'),
  last_error: z.object({ message: z.string(), at: z.iso.datetime() }).nullable(),
  in_flight: z.int().describe('Rollouts that are placed on it, across all workers.'),
  calls: z.int().describe('Requests of those rollouts that it is processing or queueing. The other rollouts are running tools.'),
  call_progress: callProgress.nullable().default(null).describe('How these requests get on; null while there are none.'),
  held_for_cache: z.int().default(0).describe('Those rollouts whose next turn waits for room in its KV cache.'),
  tokens: z.int().describe('The total context of those rollouts, in tokens, as last reported.'),
  note: z.string().nullable().default(null).describe('In the reply to a join: what was changed in the request. Otherwise null.'),
});
export type BackendView = z.infer<typeof backendView>;

export const backendList = z.object({ backends: z.array(backendView) });
