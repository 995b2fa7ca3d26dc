// Configuration of the gym scenario.

import { z } from 'zod';

export const gymConfig = z.strictObject({
  packages: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Folder with the Python packages of gym environments, as `pip install --target` fills it. It is copied into the sandboxes of gym tasks that name no image, once per machine for all rollouts of groups.',
    ),
});

export type GymConfig = z.infer<typeof gymConfig>;
