// The on-policy check: each recorded log-probability is computed again from the trajectory's ids, with the weights of the recorded
// version. If they agree, no token was changed, lost or attributed to the wrong weights.

import type { Trajectory } from '@millrace/protocol';
import { logprobsAt, type Network } from '../model/network.ts';

export interface OnPolicyCount {
  tokens: number;
  largest: number;
}

/** Twice the spacing of float32 at 8: the largest error from rounding a log-probability for the wire. */
export const tolerance = 2 ** -19;

export interface Flat {
  readonly tokenIds: Int32Array;
  readonly places: readonly number[];
  readonly recorded: readonly number[];
}

/** A trajectory as the policy saw it: all ids in a row, and which of them it sampled. */
export function flatten({ segments }: Trajectory): Flat {
  const tokenIds = Int32Array.from(segments.flatMap((segment) => [...segment.tokenIds]));
  const places: number[] = [];
  const recorded: number[] = [];
  let from = 0;
  for (const segment of segments) {
    segment.logprobs.forEach((logprob, i) => {
      places.push(from + i);
      recorded.push(logprob);
    });
    from += segment.tokenIds.length;
  }
  return { tokenIds, places, recorded };
}

/** Adds to `count`; throws at the first token that differs. */
export function checkOnPolicy(trajectory: Trajectory, versions: ReadonlyMap<number, Network>, count: OnPolicyCount): void {
  const { tokenIds } = flatten(trajectory);
  let from = 0;
  for (const { tokenIds: ids, logprobs, policy_versions: span } of trajectory.segments) {
    const places = Array.from(logprobs, (_, i) => from + i);
    from += ids.length;
    if (places.length === 0) continue;
    const network = span && span.first === span.last ? versions.get(span.first) : undefined;
    if (!network) throw new Error(`${trajectory.rolloutId}: sampled by unknown weights: ${JSON.stringify(span)}`);
    const own = logprobsAt(network, tokenIds, { places });
    logprobs.forEach((recorded, i) => {
      const difference = Math.abs((own.data[i] ?? Number.NaN) - recorded);
      if (!(difference <= tolerance))
        throw new Error(`${trajectory.rolloutId}: token ${places[i]} has log-probability ${own.data[i]}, and ${recorded} was recorded`);
      count.tokens += 1;
      count.largest = Math.max(count.largest, difference);
    });
  }
}
