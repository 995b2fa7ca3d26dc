// Gateways on the wire: an agent that runs elsewhere talks to one as to an LLM API, and its caller posts the reward.

import { z } from 'zod';
import { groupId, rolloutId } from '../ids.ts';
import { limits, priority, requires, rewardRule, samplingNames, templateDate } from '../rollout.ts';
import { sampling } from '../sampling.ts';

export const gatewayRequest = z.strictObject({
  id: rolloutId.optional().describe('The id of the gateway and of its rollout. Default: a new id.'),
  group: groupId.optional().describe('Siblings of one task share it.'),
  metadata: z.record(z.string(), z.unknown()).optional().describe('Returned unchanged.'),
  sampling: sampling.prefault({}).describe('How its turns are sampled, whatever requests ask for.'),
  allow: samplingNames,
  limits: limits.prefault({}).describe('Only `max_context_tokens` and `max_staleness` apply.'),
  reward_rule: rewardRule,
  idle_timeout_s: z.number().gt(0).max(86_400).default(600).describe('It fails as `gateway-abandoned` after this time without a request.'),
  date: templateDate.optional(),
  priority: priority.optional(),
  requires: requires.optional(),
});
export type GatewayInput = z.input<typeof gatewayRequest>;

export const gatewayOpened = z.object({
  id: rolloutId,
  key: z.string().describe('For requests to the addresses below. It is shown only here, and opens nothing else.'),
  base_url: z.string().describe("For OpenAI's clients: chat completions and Responses are below it."),
  root_url: z.string().describe("For Anthropic's and Google's clients, which add `/v1` or `/v1beta` themselves."),
});
export type GatewayOpened = z.infer<typeof gatewayOpened>;

/** Either a reward, or `discard`. */
export const gatewayReward = z
  .strictObject({
    reward: z.number().optional(),
    score: z.record(z.string(), z.unknown()).optional().describe('Details of the reward.'),
    discard: z.string().min(1).max(1000).optional().describe('Why it has no reward: it is cancelled, and what it sampled is kept.'),
  })
  .refine(({ reward, discard }) => (reward === undefined) !== (discard === undefined), 'expected either reward or discard');
