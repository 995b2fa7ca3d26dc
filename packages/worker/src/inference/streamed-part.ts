// The tokens of a call while it is streamed. If the call breaks or is stopped, they are a part of the turn with their logprobs, so that
// what a reader has seen is never sampled again.

import type { GenerateRequest } from '@millrace/engines';
import { definedOf, RolloutError } from '@millrace/protocol';
import type { SampledTurn, TurnRequest } from './sampled-turn.ts';
import { isDivisible, toEnd } from './turn-rest.ts';

type CallFacts = Omit<SampledTurn, 'tokenIds' | 'logprobs' | 'finishReason'>;

interface StreamedPart {
  readonly onTokens: NonNullable<GenerateRequest['onTokens']>;
  /** Undefined while nothing was received, and after the call has ended by itself. */
  readonly part: SampledTurn | undefined;
  begin(facts: CallFacts): void;
  /** The call has ended by itself: its generation has all tokens. */
  end(): void;
  /** The error to throw where tokens that were shown cannot be kept: a repeat would show others after them. */
  refuse(error: RolloutError): RolloutError | undefined;
}

/** Undefined if the turn is not streamed. Masks and experts come with the end of a call only, so a turn that needs them is not. */
export function openStreamedPart(turn: TurnRequest): StreamedPart | undefined {
  const { onTokens, onPart, sampling } = turn;
  if (!onTokens || !onPart || !isDivisible(sampling) || sampling.routed_experts || sampling.sampling_mask) return undefined;
  const tokenIds: number[] = [];
  const logprobs: number[] = [];
  let facts: CallFacts | undefined;
  let hasEnded = false;
  return {
    onTokens(ids, values) {
      tokenIds.push(...ids);
      logprobs.push(...values);
      onTokens(ids, values);
    },
    get part() {
      if (!facts || hasEnded || tokenIds.length === 0) return undefined;
      const part: SampledTurn = {
        ...facts,
        tokenIds: Int32Array.from(tokenIds),
        logprobs: Float32Array.from(logprobs),
        finishReason: 'abort',
      };
      const { finishReason, stoppedBy } = toEnd(part, turn); // it may have broken after the last token of the turn
      return { ...part, finishReason, ...definedOf({ stoppedBy }) };
    },
    begin(given) {
      facts = given;
    },
    end() {
      hasEnded = true;
    },
    refuse(error) {
      if (!hasEnded || tokenIds.length === 0) return undefined;
      return new RolloutError('backend-refused', `tokens that were streamed cannot be used: ${error.message}`, { cause: error });
    },
  };
}
