// A trajectory as flat columns of tokens, and cut into blocks that a page draws one at a time.

import type { TrajectoryView } from '@millrace/protocol';

export type SegmentView = TrajectoryView['segments'][number];

export interface TokenColumns {
  readonly ids: Int32Array;
  /** The index of the segment, in the trajectory. */
  readonly segment: Int32Array;
  /** NaN where the policy did not sample. */
  readonly logprob: Float32Array;
}

/** Branches by number, each with the indexes of its segments. The first branch is 0. */
export function listBranches(segments: readonly SegmentView[]): ReadonlyMap<number, readonly number[]> {
  const branches = new Map<number, number[]>();
  segments.forEach((segment, index) => {
    const branch = segment.branch ?? 0;
    branches.set(branch, [...(branches.get(branch) ?? []), index]);
  });
  return branches;
}

export function toColumns(segments: readonly SegmentView[], wanted: readonly number[] = segments.map((_, index) => index)): TokenColumns {
  const count = wanted.reduce((sum, index) => sum + (segments[index]?.token_ids.length ?? 0), 0);
  const columns = { ids: new Int32Array(count), segment: new Int32Array(count), logprob: new Float32Array(count).fill(Number.NaN) };
  let at = 0;
  for (const index of wanted) {
    const { token_ids: ids = [], logprobs = [] } = segments[index] ?? {};
    columns.ids.set(ids, at);
    columns.segment.fill(index, at, at + ids.length);
    columns.logprob.set(logprobs.slice(0, ids.length), at);
    at += ids.length;
  }
  return columns;
}

export interface TokenBlock {
  readonly segment: number;
  readonly from: number;
  readonly to: number;
  /** The first block of its segment. */
  readonly isFirst: boolean;
}

/** No block crosses a segment, and none has more than `most` tokens. */
export function toBlocks({ ids, segment }: TokenColumns, most: number): TokenBlock[] {
  const blocks: TokenBlock[] = [];
  let from = 0;
  for (let at = 1; at <= ids.length; at++) {
    if (at < ids.length && segment[at] === segment[from] && at - from < most) continue;
    const own = segment[from] ?? 0;
    blocks.push({ segment: own, from, to: at, isFirst: from === 0 || segment[from - 1] !== own });
    from = at;
  }
  return ids.length === 0 ? [] : blocks;
}

interface LogprobSummary {
  readonly count: number;
  readonly mean: number;
  readonly lowest: number;
  /** Tokens that had a chance below one percent. */
  readonly surprising: number;
}

export function summariseLogprobs(logprobs: ArrayLike<number>): LogprobSummary | undefined {
  let [count, sum, lowest, surprising] = [0, 0, 0, 0];
  for (let at = 0; at < logprobs.length; at++) {
    const value = logprobs[at] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    count += 1;
    sum += value;
    lowest = Math.min(lowest, value);
    if (value < Math.log(0.01)) surprising += 1;
  }
  return count === 0 ? undefined : { count, mean: sum / count, lowest, surprising };
}
