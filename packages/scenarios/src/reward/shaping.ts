// Rewards with named parts: what was measured, how much each part weighs, and the range into which the sum is mapped.

import { z } from 'zod';
import type { Score } from '../verifier/verifier.ts';

/** The field `shaping` of a task. Without it, the reward is the correctness, in [0, 1]. */
export const shaping = z
  .strictObject({
    correctness: z.number().min(0).default(1).describe('Weight of the correctness, which is between 0 and 1.'),
    format: z
      .number()
      .min(0)
      .default(0)
      .describe('Weight of the format: 1 if the answer was where the task asks for it, and 0 if it had to be searched for.'),
    length: z
      .strictObject({
        weight: z.number().gt(0).describe('What is subtracted at `limit_tokens` and above.'),
        free_tokens: z.int().min(0).describe('Up to here nothing is subtracted; from here on, in proportion.'),
        limit_tokens: z.int().min(1),
      })
      .refine(({ free_tokens, limit_tokens }) => free_tokens < limit_tokens, 'free_tokens must be less than limit_tokens')
      .optional()
      .describe('A penalty for the number of sampled tokens.'),
    range: z
      .tuple([z.number(), z.number()])
      .refine(([lowest, highest]) => lowest < highest, 'the lowest reward must come first')
      .default([0, 1])
      .describe(
        'The lowest and the highest reward. A sum of parts of 0 is mapped to the lowest and 1 to the highest; sums outside of that to the nearest.',
      ),
  })
  .prefault({});

type Shaping = z.infer<typeof shaping>;

/** What a verifier measured, before any weight. */
interface Measured {
  /** Between 0 and 1. */
  readonly correctness: number;
  readonly hasFormat: boolean;
  readonly sampledTokens: number;
}

/** The reward within the range, with its parts in the details. */
export function shapeReward(config: Shaping, measured: Measured, details: Readonly<Record<string, unknown>>): Score {
  const { length, range } = config;
  const [lowest, highest] = range;
  const parts = {
    correctness: config.correctness * measured.correctness,
    ...(config.format > 0 ? { format: measured.hasFormat ? config.format : 0 } : {}),
    ...(length ? { length: -length.weight * overlong(measured.sampledTokens, length) } : {}),
  };
  const sum = Object.values(parts).reduce((total, part) => total + part, 0);
  const reward = lowest + (highest - lowest) * Math.min(1, Math.max(0, sum));
  return { reward, details: { correct: measured.correctness === 1, parts, ...details } };
}

function overlong(tokens: number, { free_tokens, limit_tokens }: NonNullable<Shaping['length']>): number {
  return Math.min(1, Math.max(0, (tokens - free_tokens) / (limit_tokens - free_tokens)));
}
