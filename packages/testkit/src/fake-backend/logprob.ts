// The logprobs of all fake backends: a function of place and id, so that any test can check every token of any trajectory.

/** The logprob of an id at a place of the context under these weights: exact in float32, and checkable by anyone. */
export function fakeLogprob(position: number, id: number, weights = 0): number {
  const mixed = Math.imul(position + 1, 0x9e3779b1) ^ Math.imul(id + 1, 0x85ebca6b) ^ Math.imul(weights, 0xc2b2ae35);
  return -((mixed >>> 12) & 0xfff) / 1024;
}
