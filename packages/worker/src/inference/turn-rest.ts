// What is left of a turn that was cut while it was sampled, and where it ends.

import { findStopToken, type Generation } from '@millrace/engines';
import type { Sampling } from '@millrace/protocol';
import type { SampledTurn, TurnRequest } from './sampled-turn.ts';
import { cutTurn } from './version-parts.ts';

/** What is still to be sampled of a turn, and how many calls gave nothing of it. */
export interface Remainder extends TurnRequest {
  /** What was sampled of it already. */
  readonly before: Int32Array;
  retries: number;
}

/** A grammar starts again with each call, so a turn that it constrains cannot be continued: it is sampled again. */
export function isDivisible({ structured_outputs }: Sampling): boolean {
  return structured_outputs === undefined;
}

export function toRest(rest: Remainder, sampled: Int32Array): Remainder {
  const { min_tokens } = rest.sampling;
  const left = min_tokens === undefined ? {} : { min_tokens: Math.max(0, min_tokens - sampled.length) };
  return {
    ...rest,
    sampling: { ...rest.sampling, ...left },
    maxTokens: rest.maxTokens - sampled.length,
    before: Int32Array.from([...rest.before, ...sampled]),
    retries: 0,
  };
}

/** A stop string may begin before a cut and end after it, where the server does not see it. What follows it is not part of the turn. */
export async function endAtStop(turn: SampledTurn, { before, findStop, sampling: { stop = [] } }: Remainder): Promise<SampledTurn> {
  if (!findStop || stop.length === 0 || (before.length === 0 && turn.finishReason !== 'abort')) return turn;
  const match = await findStop(Int32Array.from([...before, ...turn.tokenIds]));
  if (!match) return turn;
  const tokens = Math.max(1, match.tokens - before.length);
  return { ...cutTurn(turn, tokens), finishReason: 'stop', stoppedBy: match.stop };
}

/** How a call ended its turn. A turn that was cut after its last token is complete: nothing may be sampled after it. */
export function toEnd(generation: Generation, { maxTokens, stopTokenIds }: TurnRequest): Pick<Generation, 'finishReason' | 'stoppedBy'> {
  const { tokenIds, finishReason } = generation;
  if (finishReason !== 'abort') return generation;
  const stoppedBy = findStopToken(tokenIds, stopTokenIds);
  if (stoppedBy !== undefined) return { finishReason: 'stop', stoppedBy };
  return { finishReason: tokenIds.length === maxTokens ? 'length' : 'abort' };
}
