// `millrace slurm roll`: brings a new version or configuration to a running deployment. The head is started again first, while the workers
// hold what they have; then worker nodes are replaced, a few at a time. LLM servers go on.

import { sleep } from '@millrace/base/clock';
import type { Arguments, Command, Io } from '../command/command.ts';
import type { Deployment } from './deployment/deployment.ts';
import { listJobs, releaseJobs, type SlurmJob, submitJob } from './deployment/queue.ts';
import { deploymentOptions, openHeadClient, toSlurmSettings } from './deployment/slurm-options.ts';
import { listActive, submitNodes, waitForHead, writeDeployment } from './up.ts';

const pollMs = 500;
/** Of the worker nodes, unless the caller says how many. */
const usualShare = 0.1;

export const rollCommand: Command = {
  name: 'slurm roll',
  summary: 'Starts the head and the worker nodes again, a few at a time, with the version and configuration of now. No rollout is lost.',
  options: {
    ...deploymentOptions,
    'at-once': { type: 'string', value: 'N', describe: 'Worker nodes that are replaced at the same time; a tenth of them by default.' },
  },
  examples: ['millrace slurm roll --config cluster.json', 'millrace slurm roll --config cluster.json --at-once 4'],
  run: runRoll,
};

async function runRoll(args: Arguments, io: Io): Promise<number> {
  const settings = toSlurmSettings(args, io);
  const { deployment } = settings;
  const jobs = await listActive(deployment);
  const head = jobs.find(({ role }) => role === 'head');
  if (head === undefined) throw new Error(`${deployment.name} is not up; start it with: millrace slurm up`);
  const workers = jobs.filter(({ role }) => role === 'worker');
  await writeDeployment(args, settings);
  const newHead = await replaceHead(deployment, head, io);
  if (newHead === undefined) return 1;
  const atOnce = args.count('at-once', 1) ?? Math.max(1, Math.floor(usualShare * workers.length));
  for (let done = 0; done < workers.length; ) {
    const some = workers.slice(done, done + atOnce);
    await replaceWorkers(deployment, some, newHead);
    done += some.length;
    io.stderr.write(`millrace: ${done} of ${workers.length} worker nodes are replaced\n`);
  }
  io.stdout.write(`${deployment.name}: the head and ${workers.length} worker nodes were started again\n`);
  return 0;
}

/** Asked twice, so that it does not wait for workers that stay. Returns the new job, if its API answers. */
async function replaceHead(deployment: Deployment, head: SlurmJob, io: Io): Promise<string | undefined> {
  await deployment.markReleased(head.id);
  await releaseJobs([head]);
  await sleep(pollMs);
  await releaseJobs([head]);
  const id = await submitJob({ script: deployment.scriptPath('head') });
  io.stderr.write(`millrace: job ${id} takes the place of ${head.id}\n`);
  const found = await waitForHead(deployment, { waitMs: Number.POSITIVE_INFINITY, io, before: head.id });
  return found && id;
}

/** Released first: there may be no node left for others. Ends when the old jobs are gone and the new ones work. */
async function replaceWorkers(deployment: Deployment, workers: readonly SlurmJob[], head: string): Promise<void> {
  await Promise.all(workers.map(({ id }) => deployment.markReleased(id)));
  await releaseJobs(workers);
  const arrays = await submitNodes(deployment, 'worker', { count: workers.length, after: head });
  const old = new Set(workers.map(({ id }) => id));
  while (!(await areReplaced(deployment, old, arrays))) await sleep(pollMs);
}

/** A new job that has ended meanwhile was released or has failed, which `slurm status` shows. */
async function areReplaced(deployment: Deployment, old: ReadonlySet<string>, arrays: readonly string[]): Promise<boolean> {
  const listed = await listJobs(deployment);
  if (listed.some(({ id }) => old.has(id))) return false;
  const jobs = listed.filter(({ id }) => arrays.includes(id.split('_')[0] ?? ''));
  await using client = await openHeadClient(deployment, 10_000);
  const machines = (await client?.machines().catch(() => [])) ?? []; // the head is busy: the next look may succeed
  const live = new Set(machines.filter(({ state }) => state === 'live').map(({ name }) => name));
  return jobs.every(({ node }) => live.has(node));
}
