// What can be set about the calls to backends.

import { z } from 'zod';

export const inferenceConfig = z.strictObject({
  stallMs: z
    .int()
    .min(0)
    .default(600_000)
    .describe('A backend from which nothing at all came for so long has failed its call, which is made again elsewhere; 0 waits for ever.'),
});

export type InferenceConfig = z.infer<typeof inferenceConfig>;
