// A trajectory is an ordered list of segments. The joined token ids of a branch are exactly what the model saw and sampled. The text is
// derived from the ids for people; nothing is ever derived from the text.

import { createHash, type Hash } from 'node:crypto';
import { z } from 'zod';
import { dialects, logprobsModes } from './backend.ts';
import { backendId, rolloutId } from './ids.ts';
import { definedOf } from './plain/defined.ts';
import { policySpan } from './rollout.ts';

/**
 * - prompt: the opening messages, rendered once; each branch starts with one
 * - sampled: the tokens that the policy sampled in one turn; the only trainable kind
 * - observation: tool results and the template's text around them
 * - inserted: the end of a turn that was cut off before the policy sampled one
 */
export const segmentKinds = ['prompt', 'sampled', 'observation', 'inserted'] as const;
export type SegmentKind = (typeof segmentKinds)[number];

export const finishReasons = ['stop', 'length', 'abort'] as const;
export type FinishReason = (typeof finishReasons)[number];

/** The id of a stop token, or a stop string. */
export const stoppedBy = z.union([z.int(), z.string()]);
export type StoppedBy = z.infer<typeof stoppedBy>;

export const toolCall = z.object({ id: z.string(), name: z.string(), arguments: z.record(z.string(), z.unknown()) });
export type ToolCall = z.infer<typeof toolCall>;

/** A chat message. */
export const message = z.object({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.string({
    error: ({ input }) => (Array.isArray(input) ? 'must be text; images and other content parts are not supported' : undefined),
  }),
  reasoning: z.string().optional().describe('What the policy wrote in think tags before its content. Only in assistant messages.'),
  tool_calls: z.array(toolCall).optional(),
  tool_call_id: z.string().optional(),
  name: z.string().optional(),
});
export type Message = z.infer<typeof message>;

/** How tokens were sampled: what a trainer needs in order to use their logprobs, and anyone to sample them again. */
export const provenance = z.object({
  engine: z.string().nullable().describe('As its server names it; null if it does not.'),
  engine_version: z.string().nullable(),
  dialect: z.enum(dialects),
  logprobs_mode: z
    .enum(logprobsModes)
    .describe('Whether the logprobs are from before (`raw`) or after (`processed`) temperature and penalties.'),
  sampling: z.record(z.string(), z.unknown()).describe('The sampling parameters, as sent with every call.'),
  tokenizer_sha256: z.string().nullable().describe("Of the service's tokenizer.json; null if it uses a backend's tokenizer."),
  template_sha256: z.string().describe('Of the chat template, followed by its variables as JSON if there are any.'),
  engine_model: z.string().nullable().optional().describe('The model, as its server names it; absent in trajectories of older versions.'),
  generation: z
    .int()
    .min(1)
    .optional()
    .describe(
      "Which server sampled: counts those that have answered at the backend's address. A restart counts, and an event says what changed.",
    ),
  logprobs_without: z
    .array(z.string())
    .optional()
    .describe(
      'The sampling parameters that changed the distribution and that the logprobs do not show. Empty: the logprobs are those of the distribution that was sampled from. Absent: unknown.',
    ),
  date: z.string().optional().describe('The date and time of `strftime_now` in the chat template: ISO 8601, in UTC.'),
});
export type Provenance = z.infer<typeof provenance>;
/** The part that depends on the call: its backend, and how it was sampled. */
export type EngineFacts = Omit<Provenance, 'tokenizer_sha256' | 'template_sha256' | 'date'>;

/** A segment without its numbers. */
export const segmentHead = z.object({
  kind: z.enum(segmentKinds),
  turn: z.int().min(0).describe('0 is the opening prompt; the first sampled segment is turn 1.'),
  branch: z
    .int()
    .min(1)
    .optional()
    .describe('The number of the branch, increased each time the history is rewritten; absent for the first branch.'),
  text: z.string(),
  messages: z.array(message).describe('The messages of this segment, as parsed or rendered.'),
  finish_reason: z.enum(finishReasons).optional(),
  stopped_by: stoppedBy.optional().describe('What ended a turn whose finish reason is `stop`: the id of a stop token, or a stop string.'),
  backend: backendId.optional(),
  policy_versions: policySpan.optional(),
  adapter: z.string().optional().describe('The LoRA adapter that sampled it; absent for the base model.'),
  provenance: z.int().min(0).optional().describe("For a sampled segment: the index of its entry in the trajectory's `provenances`."),
  retries: z.int().optional().describe('Failed calls before the one that returned these tokens, each with the same prompt.'),
});
export type SegmentHead = z.infer<typeof segmentHead>;

/** The experts that tokens were routed to: one row for each token of the branch, from token `from` to the last but one of the segment. */
export interface RoutedExperts {
  readonly from: number;
  /** The shape of one row: layers and experts, or only their product if the server does not report both. */
  readonly shape: readonly number[];
  readonly ids: Uint8Array | Uint16Array;
}

/** The tokens that top-k, top-p and min-p left to sample from: for each sampled token its number of ids, and all of these ids in turn. */
export interface SamplingMask {
  readonly lengths: Int32Array;
  readonly tokenIds: Int32Array;
}

export interface Segment extends SegmentHead {
  /** For a sampled segment, if `sampling.sampling_mask` was set. Each mask has the token that was sampled. */
  readonly samplingMask?: SamplingMask;
  /** For a sampled segment: the rows that no earlier segment has. */
  readonly routedExperts?: RoutedExperts;
  readonly tokenIds: Int32Array;
  /** One per id of a sampled segment; empty for other kinds. */
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
  /** The distinct ways in which its segments were sampled; absent in trajectories of older versions. */
  readonly provenances?: readonly Provenance[];
  /** Its text and messages were not kept: `text` is empty and `messages` has none in every segment. The ids are all there. */
  readonly textDropped?: true;
  readonly segments: readonly Segment[];
}

/** Without text and messages. The ids, from which the text can be decoded again, and all other numbers stay as they are. */
export function dropText(trajectory: Trajectory): Trajectory {
  return { ...trajectory, textDropped: true, segments: trajectory.segments.map((one) => ({ ...one, text: '', messages: [] })) };
}

/**
 * The share of a trajectory's tokens that are trainable. Every sampled token is, once; prompts, observations and what a new branch
 * repeats are not. 0 for a trajectory without tokens.
 */
export function trainableShare({ segments }: Pick<Trajectory, 'segments'>): number {
  const count = (some: readonly Segment[]) => some.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
  return count(segments.filter(({ kind }) => kind === 'sampled')) / Math.max(1, count(segments));
}

export const toolSpec = z.object({ name: z.string(), description: z.string(), parameters: z.record(z.string(), z.unknown()) });

/** The JSON format. `mask` is 1 for a segment that the policy sampled, and 0 for all others. */
export const trajectoryView = z.object({
  rollout_id: rolloutId,
  attempt: z.int(),
  model: z.string(),
  tools: z.array(toolSpec),
  provenances: z
    .array(provenance)
    .optional()
    .describe('The distinct ways in which the segments were sampled; each sampled segment has an index into it.'),
  text_dropped: z
    .literal(true)
    .optional()
    .describe('Text and messages were not kept (`retention.textHours`): both are empty in every segment. Decode the ids to read it.'),
  segments: z.array(
    segmentHead.extend({
      token_ids: z.array(z.int()),
      logprobs: z.array(z.number()),
      mask: z.union([z.literal(0), z.literal(1)]),
      routed_experts: z
        .object({ from: z.int().min(0), shape: z.array(z.int().min(1)), dtype: z.enum(['uint8', 'uint16']), data: z.base64() })
        .optional()
        .describe('Rows of experts for the tokens of the branch, starting at token `from`; little-endian in base64.'),
      sampling_mask: z
        .array(z.array(z.int()))
        .optional()
        .describe('For each sampled token, the ids that top-k, top-p and min-p left to sample from.'),
    }),
  ),
  sha256: z.string().describe('Of its id, attempt, texts and numbers, as docs/tokens.md defines it.'),
});
export type TrajectoryView = z.infer<typeof trajectoryView>;

export function toTrajectoryView(trajectory: Trajectory): TrajectoryView {
  return {
    rollout_id: rolloutId.parse(trajectory.rolloutId),
    attempt: trajectory.attempt,
    model: trajectory.model,
    tools: trajectory.tools.map((tool) => ({ ...tool })),
    ...definedOf({ provenances: trajectory.provenances?.map((one) => ({ ...one })), text_dropped: trajectory.textDropped }),
    segments: trajectory.segments.map(toSegmentView),
    sha256: trajectory.segments.reduce(addSegment, openChecksum(trajectory)).digest('hex'),
  };
}

/** The checksum of the JSON format. The segments must follow, in order, each with `addSegment`. */
export function openChecksum({ rolloutId: id, attempt }: Pick<Trajectory, 'rolloutId' | 'attempt'>): Hash {
  return createHash('sha256').update(`${id} ${attempt}\n`);
}

/** JSON has no negative zero, so a logprob of -0 counts as 0. */
export function addSegment(checksum: Hash, { kind, text, tokenIds, logprobs, samplingMask, routedExperts }: Segment): Hash {
  const bytes = Buffer.from(text);
  const numbers = [tokenIds, logprobs.map((value) => value + 0), samplingMask?.lengths, samplingMask?.tokenIds, routedExperts?.ids];
  const parts = [bytes, ...numbers.map((part) => (part ? Buffer.from(part.buffer, part.byteOffset, part.byteLength) : Buffer.alloc(0)))];
  checksum.update(`${kind} ${parts.map(({ length }) => length).join(' ')}\n`);
  return parts.reduce((sum, part) => sum.update(part), checksum);
}

export function toSegmentView(segment: Trajectory['segments'][number]): TrajectoryView['segments'][number] {
  const { tokenIds, logprobs, routedExperts, samplingMask, ...head } = segment;
  return {
    ...head,
    token_ids: Array.from(tokenIds),
    logprobs: Array.from(logprobs),
    mask: head.kind === 'sampled' ? 1 : 0,
    ...definedOf({
      routed_experts: routedExperts && toExpertsView(routedExperts),
      sampling_mask: samplingMask && maskRows(samplingMask),
    }),
  };
}

/** One list of ids for each sampled token. */
export function maskRows({ lengths, tokenIds }: SamplingMask): number[][] {
  let at = 0;
  return Array.from(lengths, (length) => {
    const row = Array.from(tokenIds.subarray(at, at + length));
    at += length;
    return row;
  });
}

function toExpertsView({ from, shape, ids }: RoutedExperts) {
  const data = Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength).toString('base64');
  return { from, shape: [...shape], dtype: ids instanceof Uint8Array ? ('uint8' as const) : ('uint16' as const), data };
}
