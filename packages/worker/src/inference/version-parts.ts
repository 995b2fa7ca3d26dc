// Parts of a sampled turn: one for each policy version, so that every sampled segment names the weights of each of its tokens; or its
// first tokens only.

import type { VersionSpan } from '@millrace/engines';
import { sliceMask } from '@millrace/engines';
import { definedOf } from '@millrace/protocol';
import type { SampledTurn } from './sampled-turn.ts';

/** The parts in order; only the last one has the finish reason and the routed experts of the turn. */
export function splitByVersion(turn: SampledTurn): SampledTurn[] {
  const { versionSpans = [], routedExperts, samplingMask, stoppedBy, ...whole } = turn;
  const spans = joinSpans(versionSpans, turn.policyVersions.first);
  if (spans.length < 2) return [turn];
  return spans.map(({ version, start, end }, at) => ({
    ...whole,
    tokenIds: turn.tokenIds.subarray(start, end),
    logprobs: turn.logprobs.subarray(start, end),
    policyVersions: { first: version, last: version },
    retries: at === 0 ? turn.retries : 0,
    ...definedOf({ samplingMask: samplingMask && sliceMask(samplingMask, start, end) }),
    ...(at === spans.length - 1 ? definedOf({ routedExperts, stoppedBy }) : { finishReason: 'abort' }),
  }));
}

/** Its first tokens. Experts of tokens that are left out are left out too. */
export function cutTurn(turn: SampledTurn, tokens: number): SampledTurn {
  const { tokenIds, logprobs, samplingMask, routedExperts, versionSpans } = turn;
  const dropped = tokenIds.length - tokens;
  if (dropped <= 0) return turn;
  const perToken = routedExperts?.shape.reduce((product, size) => product * size, 1) ?? 0;
  return {
    ...turn,
    tokenIds: tokenIds.subarray(0, tokens),
    logprobs: logprobs.subarray(0, tokens),
    ...definedOf({
      samplingMask: samplingMask && sliceMask(samplingMask, 0, tokens),
      routedExperts: routedExperts && {
        ...routedExperts,
        ids: routedExperts.ids.subarray(0, routedExperts.ids.length - dropped * perToken),
      },
      versionSpans: versionSpans?.filter(({ start }) => start < tokens).map((span) => ({ ...span, end: Math.min(span.end, tokens) })),
    }),
  };
}

/** Neighbours of one version are one span. Weights without a policy version are those that the call started with. */
function joinSpans(spans: readonly VersionSpan[], unnamed: number): Required<VersionSpan>[] {
  const joined: Required<VersionSpan>[] = [];
  for (const { version = unnamed, start, end } of spans) {
    const before = joined.at(-1);
    if (before?.version === version) joined[joined.length - 1] = { ...before, end };
    else joined.push({ version, start, end });
  }
  return joined;
}
