// Backends on the wire: LLM servers that join, drain and leave while rollouts run.

import { z } from 'zod';
import { backendId } from './ids.ts';

/**
 * - vllm: /inference/v1/generate, and /v1/completions where a server answers that it has no such route
 * - vllm-completions: /v1/completions
 * - sglang: /generate
 * - llamacpp: /completion
 */
export const dialects = ['vllm', 'vllm-completions', 'sglang', 'llamacpp'] as const;
export type Dialect = (typeof dialects)[number];

/** `processed` logprobs are of the distribution that was sampled from; `raw` ones are from before temperature and penalties. */
export const logprobsModes = ['raw', 'processed', 'unknown'] as const;
export type LogprobsMode = (typeof logprobsModes)[number];

export const backendStates = ['up', 'draining'] as const;
export type BackendState = (typeof backendStates)[number];

/** Nothing is placed on a broken backend until it answers a probe. */
const backendHealths = ['ok', 'broken'] as const;

export const joinRequest = z.strictObject({
  id: backendId.optional().describe('Made from the address where it is absent; joining twice with one id changes the record.'),
  url: z.url({ protocol: /^https?$/ }).describe('The base address, without /v1 or /inference.'),
  dialect: z.enum(dialects).default('vllm'),
  model: z.string().min(1).optional().describe('Sent as `model` in every request.'),
  api_key: z.string().min(1).optional().describe('Sent as a bearer token; never shown again.'),
  policy_version: z.int().min(0).optional().describe('Which weights it serves; absent: those that the policy has now.'),
  logprobs_mode: z
    .enum(logprobsModes)
    .default('unknown')
    .describe('What its logprobs are of, as it was started (`--logprobs-mode` of vLLM): no server tells it over HTTP.'),
});
export type JoinRequest = z.infer<typeof joinRequest>;
/** A join as a caller writes it: what has a default may be left out. */
export type JoinInput = z.input<typeof joinRequest>;

export const backendView = z.object({
  id: backendId,
  url: z.string(),
  dialect: z.enum(dialects),
  model: z.string().nullable(),
  policy_version: z.int(),
  logprobs_mode: z.enum(logprobsModes).describe("As joined, or what the dialect's servers do where they always do the same."),
  state: z.enum(backendStates),
  health: z.enum(backendHealths),
  last_error: z.object({ message: z.string(), at: z.iso.datetime() }).nullable(),
  in_flight: z.int().describe('Rollouts that run on it now, over all workers.'),
  calls: z.int().describe('Their requests that it is answering or keeps waiting; the others are busy with their tools.'),
  tokens: z.int().describe('The context of those rollouts together, as last heard.'),
});
export type BackendView = z.infer<typeof backendView>;

export const backendList = z.object({ backends: z.array(backendView) });
