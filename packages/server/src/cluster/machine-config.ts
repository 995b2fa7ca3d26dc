// Settings of the machine that workers run on.

import { machineLabels } from '@millrace/protocol';
import { z } from 'zod';

export const machineConfig = z.strictObject({
  name: z
    .string()
    .regex(/^[\w.:-]{1,128}$/, 'must be 1 to 128 letters, digits, dots, colons, underscores and hyphens')
    .optional()
    .describe('The name of this machine in `GET /v1/machines`. Default: the name of the Slurm node, or the host name.'),
  labels: machineLabels
    .default({})
    .describe(
      'What is special about this machine, such as `{"gpu": "h100"}`: what `requires` of a submission, batch or evaluation is compared with.',
    ),
});
