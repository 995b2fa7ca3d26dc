// Checks the tokens of a trajectory against the fake backend.

import type { Trajectory } from '@millrace/protocol';
import { fakeLogprob } from '../fake-backend/engines/logprob.ts';

/** The logprob of every sampled token is a function of its position and id, so one wrong, missing or repeated token shows. */
export function findWrongToken(trajectory: Trajectory): string[] {
  let position = 0;
  let branch = 0;
  for (const segment of trajectory.segments) {
    if ((segment.branch ?? 0) !== branch) position = 0; // a branch repeats its whole prompt
    branch = segment.branch ?? 0;
    const bad =
      segment.kind === 'sampled' ? segment.tokenIds.findIndex((id, at) => segment.logprobs[at] !== fakeLogprob(position + at, id)) : -1;
    if (bad >= 0) return [`${trajectory.rolloutId}: token ${position + bad} of turn ${segment.turn}`];
    position += segment.tokenIds.length;
  }
  return [];
}
