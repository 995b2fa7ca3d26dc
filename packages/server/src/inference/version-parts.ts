// A sampled turn in parts, one for each policy version, so that every sampled segment names the weights of each of its tokens.

import { definedOf } from '@millrace/protocol';
import { sliceMask } from '../trajectory/sampling-mask.ts';
import type { VersionSpan } from './backends/reply/weight-versions.ts';
import type { SampledTurn } from './sampler.ts';

/** The parts in order; only the last one has the finish reason and the routed experts of the turn. */
export function splitByVersion(turn: SampledTurn): SampledTurn[] {
  const { versionSpans = [], routedExperts, samplingMask, ...whole } = turn;
  const spans = joinSpans(versionSpans, turn.policyVersions.first);
  if (spans.length < 2) return [turn];
  return spans.map(({ version, start, end }, at) => ({
    ...whole,
    tokenIds: turn.tokenIds.subarray(start, end),
    logprobs: turn.logprobs.subarray(start, end),
    policyVersions: { first: version, last: version },
    retries: at === 0 ? turn.retries : 0,
    ...definedOf({ samplingMask: samplingMask && sliceMask(samplingMask, start, end) }),
    ...(at === spans.length - 1 ? definedOf({ routedExperts }) : { finishReason: 'abort' }),
  }));
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
