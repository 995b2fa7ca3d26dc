// `millrace slurm status`: the jobs of a deployment as Slurm sees them, its machines and its queue as the service sees them.

import { type MachineView, messageOf, type ServiceStatus } from '@millrace/protocol';
import { type Command, type Io, jsonOption } from '../command/command.ts';
import { renderTable, toTableOptions } from '../terminal/table.ts';
import { toCount } from '../terminal/text.ts';
import { renderMachines } from '../watch/machine-table.ts';
import type { Deployment } from './deployment/deployment.ts';
import { isWaiting, listJobs, type SlurmJob } from './deployment/queue.ts';
import { deploymentOptions, openHeadClient, toSlurmSettings } from './deployment/slurm-options.ts';

export const statusCommand: Command = {
  name: 'slurm status',
  summary: 'Shows the jobs of a deployment, its machines and its queue.',
  options: { ...deploymentOptions, ...jsonOption },
  examples: ['millrace slurm status --config cluster.json', 'millrace slurm status --json'],
  async run(args, io) {
    const { deployment } = toSlurmSettings(args, io);
    const jobs = await listJobs(deployment);
    const head = await deployment.readHead();
    const service = await readService(deployment);
    const isUp = service !== undefined && !(service instanceof Error);
    if (args.flag('json')) {
      const { machines = [], rollouts = null } = isUp ? service : {};
      io.stdout.write(
        `${JSON.stringify({ name: deployment.name, url: head?.url ?? null, up: isUp, jobs, machines, rollouts }, undefined, 2)}\n`,
      );
      return 0;
    }
    io.stdout.write(`${renderJobs(jobs, io).join('\n')}\n`);
    if (service === undefined) io.stdout.write('\nThe API does not run. Start it: millrace slurm up\n');
    else if (service instanceof Error) io.stdout.write(`\n${head?.url} does not answer: ${messageOf(service)}\n`);
    else io.stdout.write(`\n${renderService(service, head?.url ?? '', io).join('\n')}\n`);
    return 0;
  },
};

async function readService(deployment: Deployment): Promise<ServiceStatus | Error | undefined> {
  await using client = await openHeadClient(deployment, 5000);
  return await client?.status().catch((error: Error) => error);
}

function renderJobs(jobs: readonly SlurmJob[], io: Io): string[] {
  if (jobs.length === 0) return ['No job of this deployment is in the queue.'];
  const rows = jobs.map((job) => ({
    cells: [job.id, job.role, job.state, job.node || '-', job.elapsed, job.limit, isWaiting(job) ? job.reason : ''],
    colour: isWaiting(job) ? ('yellow' as const) : undefined,
  }));
  return renderTable(['job', 'role', 'state', 'node', 'runs for', 'limit', 'waits for'], rows, toTableOptions(io, []));
}

function renderService({ machines = [], rollouts, hints }: ServiceStatus, url: string, io: Io): string[] {
  const counts = Object.entries(rollouts)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${toCount(count)} ${state}`);
  return [
    `${url}: ${counts.join(', ') || 'no rollouts'}`,
    ...hints.map((hint) => `  ${hint}`),
    '',
    ...renderMachines(machines satisfies readonly MachineView[], toTableOptions(io, [])),
  ];
}
