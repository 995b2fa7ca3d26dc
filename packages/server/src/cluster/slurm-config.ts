// Settings of a deployment on a Slurm cluster: what `millrace slurm` asks Slurm for, and where a deployment keeps its files.

import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineLabels } from '@millrace/protocol';
import { z } from 'zod';

/** One line of a script: an option with a line break would be a command of its own. */
const line = z.string().regex(/^[^\r\n]*$/, 'must be one line');
const word = z.string().regex(/^[^\s'"]+$/, 'must be one word');

function findHome(): string {
  try {
    return homedir();
  } catch {
    return tmpdir(); // a user without an account and without HOME, who has no jobs
  }
}

/** What each kind of job may ask for. A field of a role wins over the same field for all. */
export const jobResources = {
  partition: word.optional().describe('--partition.'),
  account: word.optional().describe('--account.'),
  qos: word.optional().describe('--qos.'),
  time: word.optional().describe('--time, the time limit: `12:00:00`, `2-00:00:00`.'),
  cpus: z.int().min(1).optional().describe('--cpus-per-task.'),
  memory: word.optional().describe('--mem, the memory of a node: `64G`; `0` for all of it.'),
  gpus: word.optional().describe('--gpus-per-node: `4`, or `h100:8`.'),
  constraint: word.optional().describe('--constraint.'),
  exclusive: z.boolean().optional().describe('--exclusive: no other job on the node.'),
  options: z.array(line).optional().describe('Further options of sbatch, such as `["--reservation=rl"]`.'),
};

export const slurmRoles = ['head', 'worker', 'llm'] as const;
export type SlurmRole = (typeof slurmRoles)[number];

export const slurmConfig = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'must be 1 to 32 lower-case letters, digits and hyphens')
    .default('millrace')
    .describe('The name of the deployment. It is in the names of its jobs; two deployments of a user need two names.'),
  folder: z
    .string()
    .min(1)
    .default(() => join(findHome(), '.millrace', 'slurm'))
    .describe('Folder for the key, scripts and logs of deployments, which all nodes see; usually in your home folder.'),
  data: z
    .string()
    .min(1)
    .default(() => join(tmpdir(), `millrace-store-${process.getuid?.() ?? 0}`))
    .describe(
      "Folder of the rootless PostgreSQL on a disk of the head's node that outlives a job. Not used when `store.address` names a database.",
    ),
  allowNetworkData: z
    .boolean()
    .default(false)
    .describe('Allows `data` on a network file system. Only for one whose fsync keeps its promise; the head then may run on any node.'),
  postgresPrograms: z.string().min(1).optional().describe('Folder of `initdb` and `postgres`, if they are in no usual place.'),
  temp: z
    .string()
    .min(1)
    .default(() => tmpdir())
    .describe('Folder on a disk of each node for running sandboxes. The path must be short.'),
  network: word
    .optional()
    .describe('Network interface that the nodes reach each other by, such as `ib0`. Default: the address of the node name.'),
  graceSeconds: z
    .int()
    .min(10)
    .default(60)
    .describe('Before its time limit, a job is asked to end: how long it has to finish or hand back what runs.'),
  setup: z.array(line).default([]).describe('Lines of bash that run first in each job, such as `["module load apptainer"]`.'),
  command: z.array(word).default([]).describe('How the nodes start Millrace. Default: the program that ran `slurm up`, by its path.'),
  ...jobResources,
  head: z
    .strictObject({
      ...jobResources,
      node: word.optional().describe('The node of the head. Default: any node at first, then the one that holds the store.'),
      workers: z.int().min(0).default(0).describe("Worker processes on the head's node."),
    })
    .prefault({}),
  worker: z
    .strictObject({
      ...jobResources,
      nodes: z.int().min(0).default(1).describe('How many nodes run workers; `millrace slurm scale` changes it while they run.'),
      processes: z.int().min(1).optional().describe('Worker processes on each node. Default: one for each CPU of the job, at most 8.'),
      labels: machineLabels.default({}).describe('Labels of these machines in `GET /v1/machines`.'),
    })
    .prefault({}),
  llm: z
    .strictObject({
      ...jobResources,
      nodes: z.int().min(0).default(0).describe('How many nodes run an LLM server.'),
      command: line
        .default('')
        .describe(
          'The command of an LLM server on one node; `{port}` and `{host}` are replaced: `vllm serve MODEL --host {host} --port {port}`.',
        ),
      dialect: word.optional().describe('How it is called, as in `millrace backend add --dialect`.'),
      health: word.default('health').describe('The path that answers 200 when the server is ready.'),
      startSeconds: z.int().min(1).default(1800).describe('How long it may take to be ready.'),
    })
    .prefault({}),
});

export type SlurmConfig = z.infer<typeof slurmConfig>;
