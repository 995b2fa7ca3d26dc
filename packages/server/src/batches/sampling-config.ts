// Configuration of sampling in groups and batches.

import { z } from 'zod';

export const samplingConfig = z.strictObject({
  taskFiles: z
    .record(z.string().min(1).max(128), z.string().min(1))
    .default({})
    .describe('Task files that batches can draw from, by name; one JSON object per line.'),
});
