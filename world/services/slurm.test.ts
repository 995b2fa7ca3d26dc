// docs/slurm.md as a test: an ordinary user starts a deployment on a real Slurm, a batch of groups runs on three nodes in Apptainer, one
// node dies in mid-run, a Python client receives every group, and `down` leaves nothing behind.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Client, openClient } from '@millrace/client';
import type { Event, MachineView } from '@millrace/protocol';
import { z } from 'zod';
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
const leaseMs = 10_000;
const name = 'world';
const tasks = 8;
const groupSize = 2;

test('a batch runs on three Slurm nodes, survives the death of one, and leaves nothing behind', { skip, timeout: 900_000 }, async () => {
  await using cluster = await SlurmCluster.open({ nodes: 4, cpus: 4 });
  const { millrace } = await prepareDeployment(cluster, { name, leaseMs });
  const before = await listRunFolders(name); // an earlier run that failed may have left some
  const { url, key } = upReply.parse(JSON.parse(succeed(await millrace('slurm', 'up', '--wait', '5m', '--json')).stdout));
  await using client = openClient({ url, key });
  await until('three machines and a backend', async () => {
    const [machines, backends] = await Promise.all([client.machines(), client.backends.list()]);
    return machines.filter(({ state }) => state === 'live').length === 3 && backends.some(({ health }) => health === 'ok');
  });
  const events = follow(client);
  const receiving = cluster.run([
    '/usr/bin/python3',
    join(cluster.repository, 'world/services/slurm_client.py'),
    url,
    key,
    String(tasks),
    String(groupSize),
  ]);

  const victim = await chooseVictim(client, millrace);
  const heldIds = await heldBy(client, victim.name);
  const diedAt = Date.now();
  await cluster.killNode(victim.name);

  const received = succeed(await receiving)
    .stdout.trim()
    .split('\n')
    .map((line) => groupLine.parse(JSON.parse(line)));
  assert.equal(received.length, tasks, 'every group was delivered');
  const rollouts = received.flatMap((group) => group.rollouts);
  assert.equal(new Set(rollouts.map(({ id }) => id)).size, tasks * groupSize, 'none was delivered twice');
  for (const { id, reward, why } of rollouts) assert.equal(reward, 1, `${id}: ${why}`);

  const taken = await measureTakeover(events, heldIds, diedAt);
  const inSeconds = (pick: (one: Takeover) => number) => taken.map((one) => (pick(one) / 1000).toFixed(1)).join(', ');
  console.log(
    `${taken.length} rollouts of the lost machine: queued again after ${inSeconds(({ queuedMs }) => queuedMs)} s, running elsewhere after ${inSeconds(({ movedMs }) => movedMs)} s; the lease is ${leaseMs / 1000} s`,
  );
  assert.ok(Math.max(...taken.map(({ movedMs }) => movedMs)) <= leaseMs + 2000, JSON.stringify(taken));
  const { failures } = await client.get(taken[0]?.id ?? '');
  assert.ok(
    failures.some(({ code, message }) => code === 'worker-lost' && message.includes(`on machine ${victim.name}`)),
    JSON.stringify(failures),
  );
  assert.equal((await client.machines()).find((machine) => machine.name === victim.name)?.state, 'lost');
  events.stop();

  succeed(await millrace('slurm', 'scale', '2'));
  succeed(await millrace('slurm', 'down'));
  await checkNothingLeft(cluster, millrace, { name, url, before });

  const again = upReply.parse(JSON.parse(succeed(await millrace('slurm', 'up', '--wait', '5m', '--json')).stdout));
  assert.equal(again.key, key, 'clients keep their key');
  await using later = openClient(again);
  assert.equal((await later.status()).rollouts.done, tasks * groupSize, 'the next deployment has the same store');
  succeed(await millrace('slurm', 'down', '--purge'));
  await checkNothingLeft(cluster, millrace, { name, url: again.url, before });
  assert.deepEqual(await readdir(join(cluster.home, 'store')), [], 'the store is deleted');
});

const groupLine = z.object({ rollouts: z.array(z.object({ id: z.string(), reward: z.number(), why: z.string() })) });

/** A machine with running rollouts, on a node that runs neither the head nor the LLM server. */
async function chooseVictim(client: Client, millrace: Millrace): Promise<MachineView> {
  let found: MachineView | undefined;
  const { jobs } = await readStatus(millrace);
  const shared = new Set(jobs.filter(({ role }) => role !== 'worker').map(({ node }) => node));
  await until('a machine holds rollouts', async () => {
    found = (await client.machines()).find((machine) => machine.held >= 2 && !shared.has(machine.name));
    return found !== undefined;
  });
  assert.ok(found !== undefined);
  return found;
}

async function heldBy(client: Client, machine: string): Promise<string[]> {
  const { workers } = await client.status();
  const own = new Set(workers.filter(({ report }) => report?.machine?.name === machine).map(({ id }) => id));
  const held: string[] = [];
  for await (const rollout of client.list())
    if (rollout.ended_at === null && rollout.worker !== null && own.has(rollout.worker)) held.push(rollout.id);
  assert.ok(held.length > 0, 'it holds none');
  return held;
}

interface Followed {
  readonly seen: Event[];
  stop(): void;
}

function follow(client: Client): Followed {
  const stop = new AbortController();
  const seen: Event[] = [];
  void (async () => {
    for await (const event of client.events({ after: 0, signal: stop.signal })) seen.push(event);
  })().catch(() => {}); // it was stopped
  return { seen, stop: () => stop.abort() };
}

interface Takeover {
  readonly id: string;
  readonly queuedMs: number;
  readonly movedMs: number;
}

/** For each rollout that the machine lost, the time from its death to the queue and to the next attempt, by the events of the service. */
async function measureTakeover({ seen }: Followed, ids: readonly string[], diedAt: number): Promise<Takeover[]> {
  const find = (id: string, isIt: (event: Event) => boolean) =>
    seen.find((one) => one.rollout_id === id && Date.parse(one.at) > diedAt && isIt(one));
  const queued = (id: string) => find(id, ({ kind, data }) => kind === 'rollout-queue' && data.reason === 'loss');
  const moved = (id: string) => find(id, ({ kind, data }) => kind === 'rollout-move' && data.to === 'init');
  // A rollout that ended in the moment between the look and the death was not lost.
  const lost = ids.filter((id) => queued(id) !== undefined);
  assert.ok(lost.length > 0, 'the machine held nothing when it died');
  await until('all were taken over', async () => lost.every((id) => moved(id) !== undefined));
  const toMs = (event: Event | undefined) => Date.parse(event?.at ?? '') - diedAt;
  return lost.map((id) => ({ id, queuedMs: toMs(queued(id)), movedMs: toMs(moved(id)) }));
}
