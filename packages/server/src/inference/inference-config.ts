// What can be set about the calls to backends.

import { z } from 'zod';
import { defaultRouting } from './pool/routing.ts';

export const inferenceConfig = z.strictObject({
  stallMs: z
    .int()
    .min(0)
    .default(600_000)
    .describe('A backend from which nothing at all came for so long has failed its call, which is made again elsewhere; 0 waits for ever.'),
  breakAfter: z
    .int()
    .min(1)
    .default(5)
    .describe('So many failed calls in a row break a backend: it gets no rollouts until it answers a probe. Being busy is no failure.'),
  spillTurns: z.int().min(1).default(8).describe('A rollout may leave a backend that is far busier than the rest once in so many turns.'),
  routing: z
    .strictObject({
      affinityBound: z
        .number()
        .min(1)
        .default(defaultRouting.affinityBound)
        .describe("A group's backend is preferred while it has at most so many times the average in flight, and one more."),
      spillFactor: z
        .number()
        .min(1)
        .default(defaultRouting.spillFactor)
        .describe('A backend is far busier than another when it has more than so many times its rollouts …'),
      spillRollouts: z.int().min(2).default(defaultRouting.spillRollouts).describe('… and at least so many more.'),
    })
    .prefault({}),
});
