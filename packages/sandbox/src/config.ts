// The sandbox configuration: the driver, and the limits and network of sandboxes whose task does not set them.

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

/** The least that a sandbox can have. */
export const leastMemoryMiB = 384;

export const sandboxLimits = z.strictObject({
  cpus: z.number().gt(0).default(2).describe('CPU time of one sandbox, in cores. Enforced where cgroups are available.'),
  memoryMiB: z
    .int()
    .min(leastMemoryMiB)
    .default(2048)
    .describe("Memory of all processes of one sandbox, including files in its /tmp. Without cgroups, each process's memory."),
  processes: z.int().min(32).default(1024).describe('Maximum number of processes and threads in one sandbox.'),
  diskMiB: z
    .int()
    .min(1)
    .default(1024)
    .describe(
      'Disk of one sandbox: /workspace and, with Apptainer, all changes to the image. Held in memory in addition to `memoryMiB`; with Apptainer as root, held on the disk of `run`.',
    ),
  openFiles: z.int().min(64).default(4096).describe('Maximum number of open files of one process.'),
  wallSeconds: z.number().gt(0).default(86_400).describe('Maximum lifetime of one sandbox, counted from when a rollout receives it.'),
});

/** Every limit with its value. */
export type SandboxLimits = z.infer<typeof sandboxLimits>;

export const sandboxConfig = z.strictObject({
  driver: z
    .enum(['bubblewrap', 'apptainer'])
    .default('bubblewrap')
    .describe("What runs sandboxes: bubblewrap with the machine's own programs, or Apptainer with the image that a task names."),
  image: z.string().min(1).optional().describe('Image for tasks that name none (Apptainer only). If unset, such tasks are refused.'),
  images: z
    .string()
    .min(1)
    .default(() => join(tmpdir(), `millrace-images-${process.getuid?.() ?? 0}`))
    .describe('Folder of the image cache, on a local disk.'),
  imagesGib: z.number().gt(0).default(100).describe('Maximum size of the image cache. Images in use are never removed.'),
  imageNames: z
    .record(z.string().min(1), z.string().min(1))
    .default({})
    .describe(
      'Images that are used in the place of Docker images with these names, for machines without access to their registries. A star at the end of both stands for the rest of the name.',
    ),
  layersGib: z
    .number()
    .gt(0)
    .default(20)
    .describe('Maximum size of the layers in `run`, which hold prepared files that sandboxes share. Layers in use are never removed.'),
  limits: sandboxLimits.prefault({}),
  network: z
    .enum(['none', 'host'])
    .default('none')
    .describe("Network of tasks that do not choose one: no network, or the machine's network."),
  allowHostNetwork: z
    .boolean()
    .default(false)
    .describe("Allows tasks to use the machine's network, including everything that listens on its loopback address."),
  allowUserNamespaces: z
    .boolean()
    .default(false)
    .describe(
      'Allows tasks to create user namespaces, for programs with a sandbox of their own. More of the kernel is then open to agents.',
    ),
  warm: z
    .strictObject({
      sandboxes: z
        .int()
        .min(0)
        .default(2)
        .describe('How many sandboxes each worker starts ahead, of the kinds requested recently. 0 disables this.'),
      memoryMiB: z.int().min(0).default(256).describe("Memory for one worker's sandboxes that are started ahead, counted as 64 MiB each."),
      maxAgeSeconds: z.number().gt(0).max(86_400).default(300).describe('How long such a sandbox may wait before it is closed.'),
    })
    .prefault({}),
});

export type SandboxConfig = z.infer<typeof sandboxConfig>;
