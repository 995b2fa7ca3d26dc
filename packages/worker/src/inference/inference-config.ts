// Configuration of the calls to backends.

import { defaultRouting } from '@millrace/store';
import { z } from 'zod';
import { poolDefaults } from './pool/pool-options.ts';

export const inferenceConfig = z.strictObject({
  stallMs: z
    .int()
    .min(0)
    .default(600_000)
    .describe('A call fails if its backend sends nothing for this long, and is retried elsewhere; 0 means no limit.'),
  tokenMs: z
    .int()
    .min(0)
    .default(250)
    .describe(
      'How much longer the first byte of a reply may take for each token that the call asks for, while the backend is healthy. A reply that is not streamed sends nothing before its last token.',
    ),
  breakAfter: z
    .int()
    .min(1)
    .default(poolDefaults.breakAfter)
    .describe(
      'How many failed calls in a row break a backend. A broken backend gets no rollouts until it answers a probe. A busy reply (429, or 503 from a healthy server) does not count as a failure.',
    ),
  prioritizeLong: z
    .boolean()
    .default(false)
    .describe(
      'Whether later turns of a rollout have a higher priority, so that long rollouts end sooner. Needs vLLM with `--scheduling-policy priority`, or SGLang with `--enable-priority-scheduling`; other servers ignore it.',
    ),
  holdForCache: z
    .boolean()
    .default(true)
    .describe(
      'Whether rollouts wait at a turn boundary while their contexts do not fit into the KV cache of their backend, instead of evicting those of others. Needs vLLM or SGLang, which report how much they hold; other servers are used as without it.',
    ),
  spillTurns: z
    .int()
    .min(1)
    .default(poolDefaults.spillTurns)
    .describe('How many turns a rollout stays before it may leave a backend that is far busier than the others.'),
  routing: z
    .strictObject({
      affinityBound: z
        .number()
        .min(1)
        .default(defaultRouting.affinityBound)
        .describe("A group's backend is preferred while it has at most this many times the average number of rollouts, plus one."),
      spillFactor: z
        .number()
        .min(1)
        .default(defaultRouting.spillFactor)
        .describe('A backend is far busier than another if it has more than this many times its rollouts …'),
      spillRollouts: z.int().min(2).default(defaultRouting.spillRollouts).describe('… and at least this many more.'),
    })
    .prefault({}),
});
