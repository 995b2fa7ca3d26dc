// The whole service on a real engine: what the end-to-end tests and the demo share.

import type { RolloutView, SubmissionInput, Trajectory } from '@millrace/protocol';
import type { Engine } from '../engines/engine-process.ts';
import { scoreWithVllm } from './ask.ts';

/** A question that the model sometimes answers, with short turns. */
export function makeMath(
  id: string,
  changes: Partial<SubmissionInput> & { readonly a?: number; readonly b?: number } = {},
): SubmissionInput {
  const { a = 2, b = 3, ...rest } = changes;
  const task = { question: `What is ${a} + ${b}?`, answer: `${a + b}` };
  return { id, scenario: 'math', task, sampling: { max_tokens: 24 }, limits: { max_context_tokens: 1024 }, ...rest };
}

export interface ScoredSegment {
  readonly rolloutId: string;
  readonly version: number;
  readonly tokens: number;
  /** Between the recorded logprobs and what the engine says of the same ids now. */
  readonly largest: number;
  readonly mean: number;
}

/** Recomputes every recorded logprob of these versions with the engine's own scores of the same ids, at temperature 1. */
export async function scoreTrajectory(
  engine: Pick<Engine, 'url'>,
  { rolloutId, segments }: Trajectory,
  isWanted: (version: number) => boolean = () => true,
): Promise<ScoredSegment[]> {
  const ids = segments.flatMap(({ tokenIds }) => [...tokenIds]);
  const scores = await scoreWithVllm(engine, ids);
  let at = 0;
  return segments.flatMap(({ kind, tokenIds, logprobs, policy_versions: versions }) => {
    const begin = at;
    at += tokenIds.length;
    if (kind !== 'sampled' || tokenIds.length === 0 || !versions || !isWanted(versions.last)) return [];
    const differences = [...logprobs].map((logprob, i) => Math.abs(logprob - (scores[begin + i] ?? Number.NEGATIVE_INFINITY)));
    const mean = differences.reduce((sum, one) => sum + one, 0) / differences.length;
    return [{ rolloutId, version: versions.last, tokens: tokenIds.length, largest: Math.max(...differences), mean }];
  });
}

export function largestOf(scored: readonly ScoredSegment[]): { readonly tokens: number; readonly largest: number; readonly mean: number } {
  const tokens = scored.reduce((sum, one) => sum + one.tokens, 0);
  const mean = scored.reduce((sum, one) => sum + one.mean * one.tokens, 0) / tokens;
  return { tokens, largest: Math.max(0, ...scored.map((one) => one.largest)), mean };
}

export const isDone = ({ state, reward }: RolloutView): boolean => state === 'done' && reward !== null;
