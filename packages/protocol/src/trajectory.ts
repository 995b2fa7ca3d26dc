// A trajectory is an ordered list of segments; the token ids of a branch, joined, are exactly what the model saw and sampled.
// Text is derived from the ids and stands beside them for people; nothing is ever made from it.

import { z } from 'zod';
import { backendId, rolloutId } from './ids.ts';
import { policySpan } from './rollout.ts';

/**
 * - prompt: the opening messages, rendered once; each branch begins with one
 * - sampled: what the policy sampled in one turn; the only trainable kind
 * - observation: tool results and the template's text around them
 * - inserted: an end-of-turn that the policy owed when it was cut off
 */
export const segmentKinds = ['prompt', 'sampled', 'observation', 'inserted'] as const;
export type SegmentKind = (typeof segmentKinds)[number];

export const finishReasons = ['stop', 'length', 'abort'] as const;
export type FinishReason = (typeof finishReasons)[number];

export const toolCall = z.object({ id: z.string(), name: z.string(), arguments: z.record(z.string(), z.unknown()) });
export type ToolCall = z.infer<typeof toolCall>;

/** A message as people and chat templates know it. */
export const message = z.object({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.string(),
  tool_calls: z.array(toolCall).optional(),
  tool_call_id: z.string().optional(),
  name: z.string().optional(),
});
export type Message = z.infer<typeof message>;

/** Everything about a segment but its numbers. */
export const segmentHead = z.object({
  kind: z.enum(segmentKinds),
  turn: z.int().min(0).describe('0 is the opening prompt; the first sampled segment is turn 1.'),
  branch: z
    .int()
    .min(1)
    .optional()
    .describe('Raised each time that the history was rewritten and began anew; absent for the first branch.'),
  text: z.string(),
  messages: z.array(message).describe('The messages that this segment carries, as parsed or rendered.'),
  finish_reason: z.enum(finishReasons).optional(),
  backend: backendId.optional(),
  policy_versions: policySpan.optional(),
  retries: z.int().optional().describe('Failed calls before this one was answered, each from the same ids.'),
});
export type SegmentHead = z.infer<typeof segmentHead>;

/** Which experts the tokens were routed to: a row for each token of the branch, counted by `from`, up to the segment's last but one. */
export interface RoutedExperts {
  readonly from: number;
  /** Of one row: layers and experts, or their product where the server does not say. */
  readonly shape: readonly number[];
  readonly ids: Uint8Array | Uint16Array;
}

export interface Segment extends SegmentHead {
  /** With a sampled segment: the rows that no segment before it has. */
  readonly routedExperts?: RoutedExperts;
  readonly tokenIds: Int32Array;
  /** One for each id of a sampled segment; empty for the others. */
  readonly logprobs: Float32Array;
}

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: Record<string, unknown>;
}

export interface Trajectory {
  readonly rolloutId: string;
  readonly attempt: number;
  readonly model: string;
  readonly tools: readonly ToolSpec[];
  readonly segments: readonly Segment[];
}

export const toolSpec = z.object({ name: z.string(), description: z.string(), parameters: z.record(z.string(), z.unknown()) });

/** The JSON form. `mask` is 1 where the policy sampled the token, and only there. */
export const trajectoryView = z.object({
  rollout_id: rolloutId,
  attempt: z.int(),
  model: z.string(),
  tools: z.array(toolSpec),
  segments: z.array(
    segmentHead.extend({
      token_ids: z.array(z.int()),
      logprobs: z.array(z.number()),
      mask: z.union([z.literal(0), z.literal(1)]),
      routed_experts: z
        .object({ from: z.int().min(0), shape: z.array(z.int().min(1)), dtype: z.enum(['uint8', 'uint16']), data: z.base64() })
        .optional()
        .describe('Rows of experts for the tokens of the branch from `from` on, little-endian in base64.'),
    }),
  ),
});
export type TrajectoryView = z.infer<typeof trajectoryView>;

export function toTrajectoryView(trajectory: Trajectory): TrajectoryView {
  return {
    rollout_id: rolloutId.parse(trajectory.rolloutId),
    attempt: trajectory.attempt,
    model: trajectory.model,
    tools: trajectory.tools.map((tool) => ({ ...tool })),
    segments: trajectory.segments.map(({ tokenIds, logprobs, routedExperts, ...head }) => ({
      ...head,
      token_ids: Array.from(tokenIds),
      logprobs: Array.from(logprobs),
      mask: head.kind === 'sampled' ? 1 : 0,
      ...(routedExperts ? { routed_experts: toExpertsView(routedExperts) } : {}),
    })),
  };
}

function toExpertsView({ from, shape, ids }: RoutedExperts) {
  const data = Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength).toString('base64');
  return { from, shape: [...shape], dtype: ids instanceof Uint8Array ? ('uint8' as const) : ('uint16' as const), data };
}
