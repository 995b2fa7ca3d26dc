// `millrace slurm scale`: more worker nodes, or fewer. Nodes that are released finish or hand back what they hold.

import type { MachineView } from '@millrace/protocol';
import { type Command, type Io, UsageError } from '../command/command.ts';
import type { Deployment } from './deployment/deployment.ts';
import { isWaiting, releaseJobs, type SlurmJob } from './deployment/queue.ts';
import { deploymentOptions, openHeadClient, toSlurmSettings } from './deployment/slurm-options.ts';
import { listActive, submitNodes } from './up.ts';

export const scaleCommand: Command = {
  name: 'slurm scale',
  summary: 'Changes how many nodes run workers. Nodes that are released finish or hand back what they hold.',
  positional: '<nodes>',
  options: deploymentOptions,
  examples: ['millrace slurm scale 16 --config cluster.json'],
  async run(args, io) {
    const { deployment } = toSlurmSettings(args, io);
    const [word = ''] = args.positionals;
    if (!/^\d{1,6}$/.test(word)) throw new UsageError(`${word} is not a number of nodes`);
    return await scaleTo(deployment, Number(word), io);
  },
};

export async function scaleTo(deployment: Deployment, nodes: number, io: Io): Promise<number> {
  const jobs = await listActive(deployment);
  const head = jobs.find(({ role }) => role === 'head');
  if (head === undefined) throw new Error(`${deployment.name} is not up; start it with: millrace slurm up`);
  const workers = jobs.filter(({ role }) => role === 'worker');
  if (nodes > workers.length) await submitNodes(deployment, 'worker', { count: nodes - workers.length, after: head.id });
  else await release(deployment, workers, workers.length - nodes);
  io.stdout.write(`${deployment.name} has ${nodes} worker nodes; it had ${workers.length}\n`);
  return 0;
}

async function release(deployment: Deployment, workers: readonly SlurmJob[], count: number): Promise<void> {
  if (count <= 0) return;
  await using client = await openHeadClient(deployment);
  const machines = (await client?.machines().catch(() => [])) ?? [];
  const chosen = chooseReleased(workers, machines, count);
  await Promise.all(chosen.map(({ id }) => deployment.markReleased(id)));
  await releaseJobs(chosen);
}

/** Those that wait first, then those that hold the fewest rollouts. */
export function chooseReleased(workers: readonly SlurmJob[], machines: readonly MachineView[], count: number): SlurmJob[] {
  const held = new Map(machines.map((machine) => [machine.name, machine.held]));
  const cost = (job: SlurmJob) => (isWaiting(job) ? -1 : (held.get(job.node) ?? 0));
  return [...workers]
    .reverse()
    .sort((a, b) => cost(a) - cost(b))
    .slice(0, count);
}
