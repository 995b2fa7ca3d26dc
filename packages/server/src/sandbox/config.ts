// What runs sandboxes, and what one gets when its task does not say: its limits and its network.

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

export const sandboxLimits = z.strictObject({
  cpus: z.number().gt(0).default(2).describe('CPU time of one sandbox, in cores; kept where there are cgroups.'),
  memoryMiB: z
    .int()
    .min(384)
    .default(2048)
    .describe('Memory of the processes of one sandbox and of what is in its /tmp; per process where there are no cgroups.'),
  processes: z.int().min(32).default(1024).describe('Processes and threads of one sandbox at once.'),
  diskMiB: z
    .int()
    .min(1)
    .default(1024)
    .describe(
      'What one sandbox may write: to /workspace, and with Apptainer to all of its image. In memory, beside `memoryMiB`; with Apptainer as root, on the disk of `run`.',
    ),
  openFiles: z.int().min(64).default(4096).describe('Open files of one process.'),
  wallSeconds: z.number().gt(0).default(86_400).describe('How long one sandbox lives at most, counted from when a rollout gets it.'),
});

/** Every limit with its number. */
export type SandboxLimits = z.infer<typeof sandboxLimits>;

export const sandboxConfig = z.strictObject({
  driver: z
    .enum(['bubblewrap', 'apptainer'])
    .default('bubblewrap')
    .describe("What runs sandboxes: bubblewrap on the machine's own programs, or Apptainer on the image that a task names."),
  image: z.string().min(1).optional().describe('The image of tasks that name none; for Apptainer. Without it they are refused.'),
  images: z
    .string()
    .min(1)
    .default(() => join(tmpdir(), `millrace-images-${process.getuid?.() ?? 0}`))
    .describe('The folder of the image cache; on a disk of this machine.'),
  imagesGib: z.number().gt(0).default(100).describe('The image cache is kept below this size; images in use stay in any case.'),
  layersGib: z
    .number()
    .gt(0)
    .default(20)
    .describe('What is prepared once for many sandboxes is kept below this size, in `run`; what sandboxes stand on stays in any case.'),
  limits: sandboxLimits.prefault({}),
  network: z.enum(['none', 'host']).default('none').describe('What a task that does not say gets: no network, or the one of the machine.'),
  allowHostNetwork: z
    .boolean()
    .default(false)
    .describe("Lets tasks have the machine's network, with all that listens on its loopback address."),
  warm: z
    .strictObject({
      sandboxes: z.int().min(0).default(2).describe('Sandboxes that each worker starts ahead, of those asked for lately; 0: none.'),
      memoryMiB: z.int().min(0).default(256).describe('Memory for those of one worker, counted as 64 MiB each.'),
      maxAgeSeconds: z.number().gt(0).max(86_400).default(300).describe('One that has waited so long is closed.'),
    })
    .prefault({}),
});

export type SandboxConfig = z.infer<typeof sandboxConfig>;
