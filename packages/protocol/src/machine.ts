// Machines: the hosts that workers run on, as workers report them and as the service shows them; and what a worker on another machine
// needs to join.

import { z } from 'zod';

/** Labels are short, because each renewal carries them. */
export const machineLabels = z.record(z.string().regex(/^[A-Za-z0-9][\w./-]{0,62}$/), z.string().max(128));

/** What the sandboxes of a machine can have; tasks that ask for more are refused when they are submitted. */
export const sandboxMeans = z.object({
  driver: z.enum(['bubblewrap', 'apptainer']),
  default_image: z.boolean().describe('Whether tasks that name no image get one.'),
  network: z.enum(['none', 'host']).describe('Of tasks that choose none.'),
  host_network: z.boolean(),
  user_namespaces: z.boolean(),
});
export type SandboxMeans = z.infer<typeof sandboxMeans>;

/** What a worker reports about the machine that it runs on. */
export const machineReport = z.object({
  id: z.string().describe('The same for all workers of a machine until it is started again.'),
  name: z.string().describe('Its node name in Slurm, its host name elsewhere, or the configured name.'),
  labels: machineLabels,
  cpus: z.int(),
  memory_bytes: z.int(),
  scenarios: z.array(z.string()).optional().describe('The scenarios that its workers have loaded.'),
  sandboxes: sandboxMeans.optional().describe('What its sandboxes can have.'),
  version: z.string().optional().describe('Of the worker that reports it.'),
});
export type MachineLabels = z.infer<typeof machineLabels>;
export type MachineReport = z.infer<typeof machineReport>;

export const machineStates = ['live', 'draining', 'left', 'lost'] as const;

export const machineView = machineReport.omit({ version: true }).extend({
  versions: z.array(z.string()).describe('Of Millrace, as its workers report them; several during an upgrade.'),
  state: z
    .enum(machineStates)
    .describe('`draining`: its workers finish or hand back what they hold. `left`: they all did. `lost`: a lease ended, or a worker died.'),
  workers: z.int().describe('Live worker processes.'),
  held: z.int().describe('Rollouts that its live workers hold, in any stage.'),
  slots: z.object({ init: z.int(), run: z.int(), evaluate: z.int() }).describe('Its capacity: the slots of its live workers.'),
  heartbeat_age_ms: z.int().describe('Time since one of its workers last renewed its lease.'),
  started_at: z.iso.datetime().describe('When the first of these workers started.'),
});
export type MachineView = z.infer<typeof machineView>;

export const machineList = z.object({ machines: z.array(machineView) });

/** The settings that workers share with the service. For a worker that names no wire, they hold the address of the store with its password. */
export const workerSettings = z.object({
  config: z
    .record(z.string(), z.unknown())
    .describe('The configuration of the service, without keys and without what is local to a machine.'),
  wire: z
    .int()
    .optional()
    .describe(
      'The wire of the calls of workers that the service answers. The settings then name no store: workers reach it through servers.',
    ),
  local_store: z
    .object({ machine: z.string(), machine_id: z.string() })
    .nullable()
    .describe('The machine that holds the store, if the store is a file: only workers of that machine can join without a wire.'),
});
export type WorkerSettings = z.infer<typeof workerSettings>;
