// What happens to the jobs of a deployment on a real Slurm while rollouts run: `autoscale` adds nodes by the waiting line and releases them
// afterwards, a job goes back into Slurm's queue, another is cancelled, `roll` replaces all of them, and the time limit ends them. No rollout
// is lost, none ends twice, and the next allocation goes on from the same store.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Client, openClient } from '@millrace/client';
import { makeShellTask, readPastEvents } from '@millrace/testkit';
import { SlurmCluster } from '../engines/slurm-cluster.ts';
import {
  checkNothingLeft,
  findDeploymentSkip,
  listRunFolders,
  type Millrace,
  prepareDeployment,
  readStatus,
  succeed,
  until,
  upReply,
} from '../engines/slurm-deployment.ts';

const skip = await findDeploymentSkip();
const name = 'faults';
const [mostNodes, perNode] = [3, 12];
const [firstRollouts, rolledRollouts, lastRollouts] = [60, 16, 16];
const pace = ['--up-after', '1s', '--down-after', '4s', '--every', '1s'];
const scaling = ['--min', '1', '--max', `${mostNodes}`, '--per-node', `${perNode}`, ...pace];

test('jobs that are requeued, cancelled or out of time lose no rollout, and autoscale follows the waiting line', {
  skip,
  timeout: 900_000,
}, async () => {
  const startedAt = performance.now();
  const note = (text: string) => console.log(`${((performance.now() - startedAt) / 1000).toFixed(0)} s: ${text}`);
  await using cluster = await SlurmCluster.open({ nodes: 4, cpus: 4 });
  const { millrace, command } = await prepareDeployment(cluster, {
    ...{ name, leaseMs: 5000, workerNodes: 1, graceSeconds: 10 },
    // More than the nodes hold: there is work left when a job comes back.
    pipeline: { initSlots: 2, readySlots: 8, runSlots: 4 },
  });
  const before = await listRunFolders(name);
  const up = async () => upReply.parse(JSON.parse(succeed(await millrace('slurm', 'up', '--wait', '5m', '--json')).stdout));
  const first = await up();
  await using client = openClient(first);
  await until('a machine and a backend', async () => (await countLive(client)) === 1 && (await client.backends.list()).length === 1);
  note('up with one worker node');

  const autoscale = () => cluster.start([...command, 'slurm', 'autoscale', '--config', 'cluster.json', ...scaling]);
  const scalingUp = autoscale();
  await submit(client, 0, firstRollouts);
  await until('autoscale added nodes', async () => (await countLive(client)) === mostNodes);
  // A node that waits in Slurm's queue is the first that autoscale releases when the work runs out.
  assert.match(succeed(await scalingUp.interrupt()).stdout, new RegExp(`has ${mostNodes} worker nodes; it had 1`));
  note(`autoscale has ${mostNodes} nodes`);

  const requeued = await findBusyJob(client, millrace, []);
  succeed(await cluster.run(['scontrol', 'requeue', requeued]));
  await until('the requeued job left its node', async () => (await stateOf(millrace, requeued)) !== 'RUNNING');
  const cancelled = await findBusyJob(client, millrace, [requeued]);
  succeed(await cluster.run(['scancel', cancelled]));
  note(`requeued ${requeued}, cancelled ${cancelled}`);
  await until('the requeued job runs again', async () => (await stateOf(millrace, requeued)) === 'RUNNING');
  note('the requeued job runs again');
  await until('all ended', async () => (await client.status()).rollouts.done === firstRollouts);
  await checkEnds(client, firstRollouts);
  note(`${firstRollouts} rollouts ended once each`);

  const scalingDown = autoscale();
  await until(
    'autoscale released nodes',
    async () => (await readStatus(millrace)).jobs.filter(({ role }) => role === 'worker').length === 1,
  );
  assert.match(succeed(await scalingDown.interrupt()).stdout, /has 1 worker nodes; it had 2/);
  note('autoscale has one node again');

  await submit(client, firstRollouts, rolledRollouts);
  const old = (await readStatus(millrace)).jobs.map(({ id }) => id);
  await findBusyJob(client, millrace, []);
  assert.match(succeed(await millrace('slurm', 'roll')).stdout, /the head and 1 worker nodes were started again/);
  const { jobs } = await readStatus(millrace);
  assert.deepEqual(
    jobs.filter(({ id, role }) => role !== 'llm' && old.includes(id)).map(({ id }) => id),
    [],
    'all jobs are new',
  );
  note('a new version was rolled out');
  const beforeLimit = firstRollouts + rolledRollouts;
  await until('all ended', async () => (await client.status()).rollouts.done === beforeLimit);
  assert.deepEqual(await listLosses(client, firstRollouts, rolledRollouts), [], 'what ran was handed back');

  await submit(client, beforeLimit, lastRollouts);
  await findBusyJob(client, millrace, []);
  for (const { id, elapsed } of (await readStatus(millrace)).jobs)
    succeed(await cluster.run(['scontrol', 'update', `JobId=${id}`, `TimeLimit=${toNextMinute(elapsed)}`]));
  note('all jobs have about a minute left');
  await until('the time limit ended all jobs', async () => (await cluster.run(['squeue', '-h'])).stdout === '');
  note('all jobs ended');

  const again = await up();
  await using later = openClient(again);
  const losses = await listLosses(later, beforeLimit, lastRollouts);
  assert.deepEqual(losses, [], 'what ran at the time limit was handed back');
  await until('the rest ended', async () => (await later.status()).rollouts.done === beforeLimit + lastRollouts);
  await checkEnds(later, beforeLimit + lastRollouts);
  note('the next allocation finished the rest');
  succeed(await millrace('slurm', 'down', '--purge'));
  await checkNothingLeft(cluster, millrace, { name, url: again.url, before });
  note('down');
});

async function countLive(client: Client): Promise<number> {
  return (await client.machines()).filter(({ state }) => state === 'live').length;
}

async function submit(client: Client, first: number, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  await client.submit(numbers.map((number) => ({ id: `r${number}`, scenario: 'shell', task: makeShellTask(number) })));
}

async function stateOf(millrace: Millrace, id: string): Promise<string | undefined> {
  return (await readStatus(millrace)).jobs.find((job) => job.id === id)?.state;
}

/** A worker job whose machine holds rollouts. */
async function findBusyJob(client: Client, millrace: Millrace, except: readonly string[]): Promise<string> {
  let found: string | undefined;
  await until('a machine holds rollouts', async () => {
    const busy = new Set(
      (await client.machines()).filter(({ state, held }) => state === 'live' && held >= 2).map((machine) => machine.name),
    );
    const { jobs } = await readStatus(millrace);
    const isBusy = (job: (typeof jobs)[number]) => job.role === 'worker' && job.state === 'RUNNING' && busy.has(job.node);
    found = jobs.find((job) => isBusy(job) && !except.includes(job.id))?.id;
    return found !== undefined;
  });
  return found ?? '';
}

/** In minutes, with time for the grace period. */
function toNextMinute(elapsed: string): number {
  const seconds = elapsed.split(/[:-]/).reduce((sum, part) => 60 * sum + Number(part), 0);
  return Math.ceil((seconds + 20) / 60);
}

/** Each rollout ended once, with the reward of its task. */
async function checkEnds(client: Client, count: number): Promise<void> {
  const ends = await readPastEvents(client, 'rollout-end');
  assert.equal(ends.length, count, 'each ended once');
  assert.equal(new Set(ends.map(({ rollout_id }) => rollout_id)).size, count, 'each ended');
  for await (const { id, reward, failures } of client.list()) assert.equal(reward, 1, `${id}: ${JSON.stringify(failures)}`);
}

async function listLosses(client: Client, first: number, count: number): Promise<string[]> {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const views = await Promise.all(numbers.map((number) => client.get(`r${number}`)));
  return views.flatMap(({ failures }) => failures.filter(({ code }) => code === 'worker-lost').map(({ message }) => message));
}
