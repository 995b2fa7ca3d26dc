// The logprobs of all fake backends: a function of position and id, so that a test can check every token of a trajectory.

/** The logprob of an id at a position of the context under these weights, exact in float32. */
export function fakeLogprob(position: number, id: number, weights = 0): number {
  const mixed = Math.imul(position + 1, 0x9e3779b1) ^ Math.imul(id + 1, 0x85ebca6b) ^ Math.imul(weights, 0xc2b2ae35);
  return -((mixed >>> 12) & 0xfff) / 1024;
}
