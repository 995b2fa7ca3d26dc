// Sampling from the policy: one token after the other, each with the log-probability of the distribution that it was drawn from.

import { setImmediate as turn } from 'node:timers/promises';
import { logSoftmax, makeMatrix } from './matrix.ts';
import { forward, type Network, openCache, toLogits } from './network.ts';
import type { Random } from './random.ts';

export interface GenerateOptions {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly stopTokenIds: readonly number[];
  readonly random: Random;
  readonly signal?: AbortSignal;
}

export interface Generated {
  readonly tokenIds: number[];
  readonly logprobs: number[];
  readonly finishReason: 'stop' | 'length';
}

/** Yields after each token, so that many requests make progress at once. */
export async function generate(network: Network, promptIds: ArrayLike<number>, options: GenerateOptions): Promise<Generated> {
  const { maxTokens, temperature, stopTokenIds, random, signal } = options;
  const cache = openCache(network);
  const tokenIds: number[] = [];
  const logprobs: number[] = [];
  let fresh = promptIds;
  while (tokenIds.length < maxTokens) {
    signal?.throwIfAborted();
    const outputs = forward(network, fresh, { cache });
    const last = makeMatrix(1, outputs.cols, outputs.data.subarray(-outputs.cols));
    const distribution = logSoftmax(toLogits(network, last).data.map((logit) => logit / temperature));
    const tokenId = drawFrom(distribution, random);
    tokenIds.push(tokenId);
    logprobs.push(distribution[tokenId] ?? 0);
    if (stopTokenIds.includes(tokenId)) return { tokenIds, logprobs, finishReason: 'stop' };
    fresh = [tokenId];
    await turn();
  }
  return { tokenIds, logprobs, finishReason: 'length' };
}

function drawFrom(logprobs: Float64Array, random: Random): number {
  let rest = random.next();
  const drawn = logprobs.findIndex((logprob) => {
    rest -= Math.exp(logprob);
    return rest < 0;
  });
  // Rounding may leave a small remainder.
  return drawn < 0 ? logprobs.length - 1 : drawn;
}
