// The configuration of the LLM judge: an OpenAI-compatible server that decides whether a short text means the expected one.

import { z } from 'zod';

export const judgeConfig = z.strictObject({
  url: z
    .string()
    .default('')
    .describe(
      'Address of an OpenAI-compatible server that judges short texts, up to and including /v1. Empty: tasks with a judge are refused.',
    ),
  model: z.string().default('').describe('The model that judges.'),
  keyVariable: z.string().default('').describe('The environment variable that holds the API key of that server. Empty: no key is sent.'),
  votes: z
    .int()
    .min(1)
    .max(9)
    .default(1)
    .describe('The most replies for one verdict; the majority decides, and no more are asked for once it is known.'),
  attempts: z.int().min(1).max(10).default(3).describe('How many times one reply is tried before the verdict fails.'),
  timeoutSeconds: z.number().gt(0).default(60).describe('Time for one reply.'),
  cacheEntries: z.int().min(0).default(10_000).describe('How many verdicts each worker remembers.'),
});

export type JudgeConfig = z.infer<typeof judgeConfig>;
