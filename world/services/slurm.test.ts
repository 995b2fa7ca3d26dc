// docs/slurm.md as a test: an ordinary user starts a deployment on a real Slurm, a batch of groups runs on three nodes in Apptainer, one
// node dies in mid-run, a Python client receives every group, and `down` leaves nothing behind.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Client, openClient } from '@millrace/client';
import { type Event, type MachineView, machineView } from '@millrace/protocol';
import { probeApptainer } from '@millrace/server';
import { makeTinyImage, qwen3Folder } from '@millrace/testkit';
import { z } from 'zod';
import { type CommandResult, findSlurmSkip, SlurmCluster } from '../engines/slurm-cluster.ts';

const root = resolve(import.meta.dirname, '../..');
const apptainer = await probeApptainer();
const skip = findSlurmSkip() || (apptainer.ok ? false : `${apptainer.reason}; try: ${apptainer.remedy}`);
const leaseMs = 10_000;
const name = 'world';
const tasks = 8;
const groupSize = 2;

const upReply = z.object({ url: z.string(), key: z.string(), node: z.string() });
const jobList = z.array(z.object({ id: z.string(), role: z.string(), state: z.string(), node: z.string() }));
const statusReply = z.object({ up: z.boolean(), jobs: jobList, machines: z.array(machineView) });

test('a batch runs on three Slurm nodes, survives the death of one, and leaves nothing behind', { skip, timeout: 900_000 }, async () => {
  await using cluster = await SlurmCluster.open({ nodes: 4, cpus: 4 });
  const millrace = await prepare(cluster);
  const before = await listRunFolders(); // an earlier run that failed may have left some
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
  await checkNothingLeft(cluster, millrace, { url, before });

  const again = upReply.parse(JSON.parse(succeed(await millrace('slurm', 'up', '--wait', '5m', '--json')).stdout));
  assert.equal(again.key, key, 'clients keep their key');
  await using later = openClient(again);
  assert.equal((await later.status()).rollouts.done, tasks * groupSize, 'the next deployment has the same store');
  succeed(await millrace('slurm', 'down', '--purge'));
  await checkNothingLeft(cluster, millrace, { url: again.url, before });
  assert.deepEqual(await readdir(join(cluster.home, 'store')), [], 'the store is deleted');
});

type Millrace = (...args: string[]) => Promise<CommandResult>;

const groupLine = z.object({ rollouts: z.array(z.object({ id: z.string(), reward: z.number(), why: z.string() })) });

/** Writes the configuration that docs/slurm.md shows, with a fake LLM server in the place of vLLM. */
async function prepare(cluster: SlurmCluster): Promise<Millrace> {
  const toView = (path: string) => join(cluster.repository, relative(root, resolve(root, path)));
  const image = join(cluster.home, 'image');
  await mkdir(image);
  await makeTinyImage(image);
  const node = toView(process.execPath);
  const testkit = 'packages/testkit/src';
  const policy = toView(`${testkit}/chaos/scene/chaos-play.ts`);
  const config = {
    model: { tokenizer: toView(qwen3Folder()) },
    sandbox: { driver: 'apptainer', image, images: join(cluster.home, 'images') },
    // Room for all of them on two machines: what is measured is the takeover, not the queue.
    pipeline: { leaseMs, initSlots: 2, readySlots: 16 },
    slurm: {
      name,
      network: 'lo',
      time: '30:00',
      data: join(cluster.home, 'store'),
      graceSeconds: 20,
      head: { cpus: 1 },
      worker: { nodes: 3, cpus: 3, processes: 1, labels: { kind: 'cpu' } },
      llm: {
        nodes: 1,
        cpus: 1,
        command: `${node} ${toView(`${testkit}/fake-backend/process/main.ts`)} --policy ${policy} --latency 1500 --port {port}`,
      },
    },
  };
  await writeFile(join(cluster.home, 'cluster.json'), JSON.stringify(config, undefined, 2));
  execFileSync('chown', ['-R', '65534:65534', cluster.home]);
  const main = [node, '--disable-warning=ExperimentalWarning', toView('packages/cli/src/main.ts')];
  return (...args) => cluster.run([...main, ...args, '--config', 'cluster.json']);
}

function succeed(result: CommandResult): CommandResult {
  assert.equal(result.code, 0, `${result.stdout}\n${result.stderr}`);
  return result;
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 240_000;
  while (!(await isSo())) {
    assert.ok(performance.now() < endsAt, `${what}: not after four minutes`);
    await pause(200);
  }
}

/** A machine with running rollouts, on a node that runs neither the head nor the LLM server. */
async function chooseVictim(client: Client, millrace: Millrace): Promise<MachineView> {
  let found: MachineView | undefined;
  const { jobs } = statusReply.parse(JSON.parse(succeed(await millrace('slurm', 'status', '--json')).stdout));
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

async function listRunFolders(): Promise<string[]> {
  return (await readdir('/tmp')).filter((folder) => folder.startsWith(`mr-${name}-`));
}

async function checkNothingLeft(
  cluster: SlurmCluster,
  millrace: Millrace,
  { url, before }: { readonly url: string; readonly before: readonly string[] },
): Promise<void> {
  const { up, jobs } = statusReply.parse(JSON.parse(succeed(await millrace('slurm', 'status', '--json')).stdout));
  assert.deepEqual([up, jobs], [false, []]);
  assert.equal((await cluster.run(['squeue', '-h'])).stdout, '');
  await until('no process is left', async () => (await cluster.jobProcesses()).length === 0);
  const folders = (await listRunFolders()).filter((folder) => !before.includes(folder));
  assert.ok(folders.length <= 1, `only that of the dead node may be left: ${folders}`);
  const socket = createConnection(Number(new URL(url).port), new URL(url).hostname);
  await assert.rejects(new Promise((done, fail) => socket.once('connect', done).once('error', fail)), /ECONNREFUSED/);
}
