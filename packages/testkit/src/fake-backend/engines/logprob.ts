// The logprobs of all fake backends: a function of position and id, so that a test can check every token of a trajectory.

/** What a logprob depends on besides the token. */
interface LogprobSource {
  readonly weights?: number;
  /** 1 for logprobs from before temperature. */
  readonly temperature?: number;
}

/** The logprob of an id at a position of the context under these weights, in float32; exact at temperature 1. */
export function fakeLogprob(position: number, id: number, source: number | LogprobSource = 0): number {
  const { weights = 0, temperature = 1 } = typeof source === 'number' ? { weights: source } : source;
  const mixed = Math.imul(position + 1, 0x9e3779b1) ^ Math.imul(id + 1, 0x85ebca6b) ^ Math.imul(weights, 0xc2b2ae35);
  return Math.fround(-((mixed >>> 12) & 0xfff) / 1024 / Math.max(temperature, 0.01));
}
