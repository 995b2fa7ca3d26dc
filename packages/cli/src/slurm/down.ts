// `millrace slurm down`: ends the jobs of a deployment in the order in which they need each other: workers hand back what they hold, LLM
// servers leave the pool, and the head stops the service and the database last. The store stays for the next `up`.

import { rm } from 'node:fs/promises';
import { sleep } from '@millrace/base/clock';
import { writeWhole } from '@millrace/base/write-whole';
import type { Arguments, Command, Io } from '../command/command.ts';
import type { Deployment } from './deployment/deployment.ts';
import { cancelJobs, listJobs, releaseJobs, type SlurmJob } from './deployment/queue.ts';
import { deploymentOptions, toSlurmSettings } from './deployment/slurm-options.ts';

const pollMs = 300;
/** What a job may take to end in addition to its grace period. */
const leaveMs = 20_000;

export const downCommand: Command = {
  name: 'slurm down',
  summary: 'Ends all jobs of a deployment. Rollouts that run go back to the queue; the store, the key and the logs stay.',
  options: {
    ...deploymentOptions,
    now: { type: 'boolean', describe: 'Cancels the jobs without waiting for them to hand back what they hold. Nothing is lost by it.' },
    purge: { type: 'boolean', describe: 'Also deletes the store, the key, the scripts and the logs.' },
  },
  examples: ['millrace slurm down --config cluster.json', 'millrace slurm down --config cluster.json --purge'],
  run: runDown,
};

async function runDown(args: Arguments, io: Io): Promise<number> {
  const { config, deployment } = toSlurmSettings(args, io);
  const isPurge = args.flag('purge');
  if (isPurge) await writeWhole(deployment.purgePath, '').catch(() => {}); // without a folder there is nothing to purge
  const jobs = await listJobs(deployment);
  const graceMs = args.flag('now') ? 0 : config.slurm.graceSeconds * 1000 + leaveMs;
  if (args.flag('now')) await cancelJobs(jobs);
  await endJobs(deployment, { roles: ['worker', 'llm'], graceMs });
  await endJobs(deployment, { roles: ['head'], graceMs });
  await deployment.removeHead();
  await deployment.forgetReleased();
  const hadStore = isPurge && jobs.every(({ role }) => role !== 'head') && (await deployment.readHome())?.node !== undefined;
  if (isPurge) await rm(deployment.folder, { recursive: true, force: true });
  io.stdout.write(`${deployment.name} is down; ${jobs.length} ${jobs.length === 1 ? 'job' : 'jobs'} ended\n`);
  if (hadStore) io.stderr.write(`millrace: the head did not run: its store is still in ${config.slurm.data} on its node\n`);
  return 0;
}

/** Returns when no such job is left: asked to end first, cancelled after the grace period, and again if it came back. */
async function endJobs(
  deployment: Deployment,
  { roles, graceMs }: { readonly roles: readonly SlurmJob['role'][]; readonly graceMs: number },
): Promise<void> {
  const list = async () => (await listJobs(deployment)).filter(({ role }) => roles.includes(role));
  const first = await list();
  await Promise.all(first.map(({ id }) => deployment.markReleased(id)));
  await releaseJobs(first);
  let cancelAt = performance.now() + graceMs;
  for (let left = await list(); left.length > 0; left = await list()) {
    if (performance.now() > cancelAt) {
      await cancelJobs(left);
      cancelAt = performance.now() + leaveMs;
    }
    await sleep(pollMs);
  }
}
