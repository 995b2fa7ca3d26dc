// Where siblings part: the first token at which not all of them agree.

import { listBranches, type SegmentView, toColumns } from './tokens.ts';

export interface Divergence {
  /** How many tokens all of them share. */
  readonly tokens: number;
  /** For each sibling: the segment of its first own token, and how many tokens of it are shared. Absent if it has no token of its own. */
  readonly at: readonly ({ readonly segment: number; readonly offset: number } | undefined)[];
}

/** The first branch of each trajectory is compared. */
export function findDivergence(trajectories: readonly (readonly SegmentView[])[]): Divergence {
  const columns = trajectories.map((segments) => toColumns(segments, listBranches(segments).get(0) ?? []));
  const [first] = columns;
  if (first === undefined) return { tokens: 0, at: [] };
  const shortest = Math.min(...columns.map(({ ids }) => ids.length));
  let tokens = 0;
  while (tokens < shortest && columns.every(({ ids }) => ids[tokens] === first.ids[tokens])) tokens += 1;
  return {
    tokens,
    at: columns.map(({ segment }) => {
      const own = segment[tokens];
      return own === undefined ? undefined : { segment: own, offset: tokens - segment.indexOf(own) };
    }),
  };
}
