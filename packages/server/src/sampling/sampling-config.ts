// What can be set about sampling in groups and batches.

import { z } from 'zod';

export const samplingConfig = z.strictObject({
  taskFiles: z
    .record(z.string().min(1).max(128), z.string().min(1))
    .default({})
    .describe('Files of tasks by name, one JSON object in each line, from which batches may draw.'),
});
