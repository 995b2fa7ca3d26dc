// DAPO as functions on arrays: group-normalised advantages, clip-higher, a token-level loss, and a soft penalty for overlong answers.
// Pure: no weights and no network here.

export interface DapoOptions {
  readonly clipLow: number;
  readonly clipHigh: number;
}

export const dapo: DapoOptions = { clipLow: 0.2, clipHigh: 0.28 };

/** Each reward's distance from the group's mean in standard deviations. */
export function toAdvantages(rewards: readonly number[]): number[] {
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const variance = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length;
  return rewards.map((reward) => (reward - mean) / (Math.sqrt(variance) + 1e-6));
}

/** Whether a group teaches anything: if all rewards are equal, all advantages are 0. */
export function isInformative(rewards: readonly number[]): boolean {
  return rewards.some((reward) => Math.abs(reward - (rewards[0] ?? 0)) > 1e-6);
}

/** 0 up to `free` sampled tokens, -1 from `most`, linear in between. */
export function overlongPenalty(sampledTokens: number, { free, most }: { readonly free: number; readonly most: number }): number {
  return -Math.min(1, Math.max(0, (sampledTokens - free) / (most - free)));
}

export interface TokenTerm {
  /** What the token adds to the loss, before it is divided by the batch's tokens. */
  readonly loss: number;
  /** The derivative of that by the token's log-probability. */
  readonly slope: number;
  readonly isClipped: boolean;
}

/** One token: -min(ratio · A, clip(ratio, 1 - low, 1 + high) · A). */
export function toTokenTerm(
  { logprob, recorded, advantage }: { readonly logprob: number; readonly recorded: number; readonly advantage: number },
  { clipLow, clipHigh }: DapoOptions = dapo,
): TokenTerm {
  const ratio = Math.exp(logprob - recorded);
  const bounded = Math.min(1 + clipHigh, Math.max(1 - clipLow, ratio));
  const isClipped = bounded * advantage < ratio * advantage;
  return { loss: -(isClipped ? bounded : ratio) * advantage, slope: isClipped ? 0 : -ratio * advantage, isClipped };
}
